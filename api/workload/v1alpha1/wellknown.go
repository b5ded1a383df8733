package v1alpha1

// Group is the API group of Portico's kinds and the prefix of its own labels,
// annotations and finalizers.
const Group = "workload.crossplane.io"

// Labels.
const (
	// ScheduleLabel on an object or a namespace opts in to remote scheduling. On a
	// namespace it applies to the objects that are created there. Portico also sets it in
	// Pod templates, to keep the hub from running their Pods.
	ScheduleLabel = Group + "/schedule"
	// ScheduleRemote runs the object on a target.
	ScheduleRemote = "remote"
	// ScheduleLocal keeps an object on the hub although its namespace opts in.
	ScheduleLocal = "local"

	// ApplicationLabel names the KubernetesApplication of a native object. Without the
	// label, the label of the namespace applies, and then DefaultApplication.
	ApplicationLabel = Group + "/application"
	// DefaultApplication is the application of objects without an ApplicationLabel.
	DefaultApplication = "default"

	// FrontDoorLabel is on the applications and resources that Portico makes from native
	// objects. Those that a user wrote do not have it.
	FrontDoorLabel = Group + "/front-door"
	// FrontDoor is the only value of FrontDoorLabel.
	FrontDoor = "true"

	// DependencyLabel is on the resources that Portico makes from objects that other
	// resources need on their target.
	DependencyLabel = Group + "/dependency"
	// DependencyShared is the only value of DependencyLabel. All resources on the target
	// that need the object share it.
	DependencyShared = "shared"

	// ConnectionLabel is on the Secrets in Portico's own namespace that contain
	// connections to targets.
	ConnectionLabel = Group + "/connection"
	// ConnectionLabelPrivate is the only value of ConnectionLabel.
	ConnectionLabelPrivate = "private"

	// ManagedByLabel is on every object that Portico makes on a target. Its value is the
	// identity of the hub, which is the UID of its namespace kube-system.
	ManagedByLabel = Group + "/managed-by"
	// HubNamespaceLabel is on every object that Portico makes on a target. Its value is
	// the namespace of the object's resource on the hub. Portico watches the objects of
	// each namespace by this label.
	HubNamespaceLabel = Group + "/hub-namespace"
)

// Annotations on the hub.
const (
	// TargetSelectorAnnotation on an object or its namespace selects targets by label,
	// in label-selector syntax ("env=prod,region in (eu-1,eu-2)").
	TargetSelectorAnnotation = Group + "/target-selector"
	// TolerationsAnnotation on an object or its namespace allows the application on
	// tainted targets, in the syntax of kubectl taint ("key=value:NoSchedule,other").
	TolerationsAnnotation = Group + "/tolerations"
	// MoveFromAnnotation on a KubernetesApplication asks the scheduler to move the
	// application off the named target, if the application is on it. The scheduler
	// removes the annotation.
	MoveFromAnnotation = Group + "/move-from"
	// AllowDataLossAnnotation on the same object as MoveFromAnnotation, with the value
	// "true", allows to move an application that has claims, whose data does not move. The
	// scheduler removes the annotation with the other.
	AllowDataLossAnnotation = Group + "/allow-data-loss"
	// ReleaseAnnotation on a KubernetesTarget, with the value "true", allows its
	// deletion although resources are on it. Their objects remain on the target. On a
	// KubernetesApplication or KubernetesApplicationResource that is being deleted, the
	// annotation releases only this application or resource, if its target is
	// unreachable.
	ReleaseAnnotation = Group + "/release"
	// ForceAnnotation, with the value "true", takes the fields of an object from other
	// field managers on the target. It is on a native object, or on a
	// KubernetesApplicationResource or its template in an application.
	ForceAnnotation = Group + "/force"
	// AdoptAnnotation says whether Portico takes over an existing object on the target:
	// see AdoptionPolicy. It is on a native object, or on a
	// KubernetesApplicationResource or its template in an application.
	AdoptAnnotation = Group + "/adopt"
	// DeletionAnnotation says whether the object on the target is deleted together with
	// its KubernetesApplicationResource: see DeletionPolicy. It is on the same objects
	// as AdoptAnnotation.
	DeletionAnnotation = Group + "/deletion"
	// DriftAnnotation is the drift policy: see DriftPolicy. It is on a native object, or
	// on a KubernetesApplicationResource or its template in an application. On a
	// namespace it applies to all objects without the annotation.
	DriftAnnotation = Group + "/drift"
	// ScheduleOnAnnotation on a CronJob says which cluster makes its Jobs.
	ScheduleOnAnnotation = Group + "/schedule-on"
	// ScheduleOnHub makes the Jobs on the hub, and sends them. It is the default.
	ScheduleOnHub = "hub"
	// ScheduleOnTarget sends the CronJob, and suspends it on the hub.
	ScheduleOnTarget = "target"
	// ObserveAnnotation on a native object is spec.observe of its
	// KubernetesApplicationResource: see ObservePolicy.
	ObserveAnnotation = Group + "/observe"
	// AdoptExistingAnnotation on a namespace that opts in, with the value "true", also
	// opts in the existing objects.
	AdoptExistingAnnotation = Group + "/adopt-existing"
	// IntentAnnotation records which of the fields that the hub allocates were set by
	// the user. Only admission can tell. See kinds.Intent.
	IntentAnnotation = Group + "/intent"
	// FenceHolderAnnotation on the Lease of the leader election names the process that
	// leads this hub. The Leases on targets name the same process. The next leader takes
	// over the Leases of the named process.
	FenceHolderAnnotation = Group + "/fence-holder"
	// TemplatedAnnotation on a KubernetesApplicationResource lists the labels and
	// annotations from its application's template. Portico removes a listed label or
	// annotation when the template no longer has it, and keeps all others. The
	// annotation is also there when the list is empty: it marks the resource as made
	// from a template, if a backup left out its owner.
	TemplatedAnnotation = Group + "/templated"
	// RollAnnotation, with the value "true", is on a Deployment, StatefulSet or DaemonSet, or
	// on its KubernetesApplicationResource. It replaces the Pods on the target when an
	// environment variable from a Secret or ConfigMap changes.
	RollAnnotation = Group + "/roll-on-change"
	// LeftAnnotation, with the value "true", is on the resource of a shared dependency that
	// an object needs which was left on the target with Portico's marks. The dependency is
	// then left there as well, until a resource needs it again.
	LeftAnnotation = Group + "/left-on-target"
	// WithRBACAnnotation, with the value "true", on a native object or its namespace, sends
	// the RoleBindings that name the ServiceAccount of its Pods, and their Roles. Setting
	// it requires the right to grant them on the hub.
	WithRBACAnnotation = Group + "/with-rbac"
	// CopiedFromAnnotation on a Secret names the managed cluster whose connection
	// Portico copied into the Secret, for a KubernetesTarget with spec.clusterRef.
	CopiedFromAnnotation = Group + "/copied-from"
	// ConnectionOfAnnotation on a Secret in Portico's own namespace names the
	// KubernetesTarget of the connection, by namespace and name.
	ConnectionOfAnnotation = Group + "/connection-of"
)

// AggregateToPorticoLabel on a ClusterRole, with the value "true", adds its rules to
// Portico's role. An administrator uses it to let Portico read a kind of managed
// clusters.
const AggregateToPorticoLabel = "rbac." + Group + "/aggregate-to-portico"

// Annotations on a target's objects: the resource on the hub that the object belongs to
// (S0, Controller Ownership), and the state that was last sent.
const (
	ResourceUIDAnnotation       = "kubernetesapplicationresource." + Group + "/uid"
	ResourceNamespaceAnnotation = "kubernetesapplicationresource." + Group + "/namespace"
	ResourceNameAnnotation      = "kubernetesapplicationresource." + Group + "/name"

	// HubGenerationAnnotation is the generation of the native object on the hub. Portico
	// uses it to translate observedGeneration. It is also on resources. See
	// kinds.HubGeneration.
	HubGenerationAnnotation = Group + "/hub-generation"
	// AppliedAnnotation is the digest of the fields that were last applied. It
	// distinguishes fields that were removed on the hub from fields that others added on
	// the target.
	AppliedAnnotation = Group + "/applied"
	// CopyAnnotation is on the Secrets and ConfigMaps that were copied for an object. It
	// names the original on the hub.
	CopyAnnotation = Group + "/copy-of"
	// ContentAnnotation is on a Secret or ConfigMap that is sent under its own name. Its
	// value changes with every change of the data, and contains the number of changes.
	ContentAnnotation = Group + "/content"
	// EnvironmentAnnotation is in the Pod template of an object with RollAnnotation. Its
	// value changes when an environment variable from a Secret or ConfigMap changes.
	EnvironmentAnnotation = Group + "/environment"
)

// Annotations of the first implementation of S0 on a target's objects. Such an object
// belongs to the resource of the same name on this hub.
const (
	LegacyUIDAnnotation       = "KubernetesApplication." + Group + "/uid"
	LegacyNamespaceAnnotation = "KubernetesApplication." + Group + "/namespace"
	LegacyNameAnnotation      = "KubernetesApplication." + Group + "/name"
)

// AdoptionPolicy says whether a resource takes over an existing object on its target.
type AdoptionPolicy string

// The policies of adoption. An object that a controller on the target owns is never
// taken over, because the controller would revert changes or delete the object.
const (
	// AdoptNever does not touch the object. It is the default.
	AdoptNever AdoptionPolicy = "Never"
	// AdoptIfUnowned takes over the object if it belongs to no other resource of any
	// hub.
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"
	// AdoptForce takes over the object from another resource, too, but only once: if the
	// other resource takes it back, Portico does not take it again.
	AdoptForce AdoptionPolicy = "Force"
)

// DeletionPolicy says whether the object on a target is deleted together with its
// resource.
type DeletionPolicy string

// The policies of deletion.
const (
	// DeletionDelete deletes the object. It is the default.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan keeps the object and its copies on the target, and removes
	// Portico's labels and annotations from them.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// Selectable fields of the CustomResourceDefinitions, for field selectors.
const (
	// TargetField of a KubernetesApplicationResource names its target.
	TargetField = "spec.targetRef.name"
	// LeavingTargetField of a KubernetesApplicationResource names the target that its
	// object is leaving.
	LeavingTargetField = "spec.leavingTargetRef.name"
	// ConnectionSecretField of a KubernetesTarget names its connection Secret.
	ConnectionSecretField = "spec.connectionSecretRef.name"
)

// RemoteLoadBalancerClass is the class of a remote Service of type LoadBalancer on the
// hub. The hub's cloud controller ignores Services with this class.
const RemoteLoadBalancerClass = Group + "/remote"

// RemoteNodeName is the name of no node. A remote DaemonSet has it in its Pod template on
// the hub.
const RemoteNodeName = "remote." + Group

// RemoteJobManager in spec.managedBy of a Job keeps the hub's Job controller away from a
// Job that runs on a target.
const RemoteJobManager = Group + "/remote"

// RemoteSchedulingGate keeps the hub's scheduler away from a Pod that runs on a target.
const RemoteSchedulingGate = Group + "/remote"

// RemoteVolumeName is the name of no volume, because the name of a volume has no slash. A
// remote PersistentVolumeClaim has it on the hub, if its user named no volume.
const RemoteVolumeName = Group + "/remote"

// RemoteIngressClass is the class of a remote Ingress on the hub, if its user named no
// class. No IngressClass has this name.
const RemoteIngressClass = "remote." + Group

// PropagationFinalizer keeps a KubernetesApplicationResource until its object is
// deleted on the target.
const PropagationFinalizer = Group + "/propagation"

// TemplatesFinalizer keeps a KubernetesApplication until the resources of its templates
// are deleted.
const TemplatesFinalizer = Group + "/templates"

// InUseFinalizer keeps a KubernetesTarget until no resource is on it.
const InUseFinalizer = Group + "/in-use"

// PublishVerb is the verb that a user needs on a managed cluster to publish it by a
// KubernetesTarget. RBAC rules grant it, and Portico checks it. No API request has this
// verb.
const PublishVerb = "publish"

// Field managers, one for each writer.
const (
	IntakeManager      = "portico-intake"
	SchedulerManager   = "portico-scheduler"
	ApplicationManager = "portico-application"
	PropagationManager = "portico-propagation"
	StatusManager      = "portico-status"
	TargetManager      = "portico-target"
	PublishManager     = "portico-publish"
	ClaimManager       = "portico-claim"
	OptInManager       = "portico-opt-in"
	DependencyManager  = "portico-dependencies"
	KindManager        = "portico-kinds"
)

// Keys of a connection Secret (S1, S3). If there is a kubeconfig, the other keys are
// not used.
const (
	SecretKubeconfig = "kubeconfig"
	SecretEndpoint   = "endpoint"
	SecretClusterCA  = "clusterCA"
	SecretClientCert = "clientCert"
	SecretClientKey  = "clientKey"
	SecretUsername   = "username"
	SecretPassword   = "password"
	SecretToken      = "token"
)

// Condition types.
const (
	// Synced says whether the desired state was applied. It is a condition of
	// Crossplane.
	Synced = "Synced"
	// Ready says whether the object works. It is a condition of Crossplane.
	Ready = "Ready"
	// Scheduled says whether a target was selected. If not, the message gives the
	// reason.
	Scheduled = "Scheduled"
	// DependenciesReady says whether the dependencies of an object, such as the
	// ServiceAccount of its Pods, are on the target. If not, the message names those that
	// are missing.
	DependenciesReady = "DependenciesReady"
	// SecretsReady says whether the Secrets and ConfigMaps of an object are on the
	// target. If not, the message names those that are missing.
	SecretsReady = "SecretsReady"
	// TargetReachable says whether the target answers. If not, the message has the time
	// of the last answer.
	TargetReachable = "TargetReachable"
	// Published says whether the target agrees with its claim. The condition exists only
	// if the publish policies denied a change of the claim.
	Published = "Published"
	// Drifted says whether the object was changed on the target. The condition exists
	// only with the drift policy Report.
	Drifted = "Drifted"
	// Observed says whether status.observed shows the whole object. The condition exists
	// only with spec.observe: Full.
	Observed = "Observed"
	// Fenced says whether this hub holds its Lease on the target's cluster. The Lease
	// keeps another Portico of the same identity from writing there. The condition is
	// Unknown if the connection has no right to the Lease.
	Fenced = "Fenced"
	// CredentialValid says whether the credential of a target is valid, ends soon, or
	// has ended. The condition exists if the expiry is known.
	CredentialValid = "CredentialValid"
)

// Condition reasons, which are also the reasons of events.
const (
	// ReasonScheduled says that a target was selected.
	ReasonScheduled = "Scheduled"
	// ReasonNoMatchingTarget says that no target matches. The message gives the reason
	// for each target.
	ReasonNoMatchingTarget = "NoMatchingTarget"
	// ReasonNotScheduled says that nothing was sent, because no target has been
	// selected.
	ReasonNotScheduled = "NotScheduled"
	// ReasonMoving says that a resource has a new target, and is not ready there yet.
	ReasonMoving = "Moving"
	// ReasonCannotMove says that an application has to leave its target, and no other
	// target matches.
	ReasonCannotMove = "CannotMove"
	// ReasonTargetReleased says that the target was released and deleted, and its
	// objects were left there.
	ReasonTargetReleased = "TargetReleased"
	// ReasonDeniedByPolicy says that a policy denies the object.
	ReasonDeniedByPolicy = "DeniedByPolicy"
	// ReasonPolicyFailed says that a policy could not be evaluated, and its
	// failurePolicy is Fail.
	ReasonPolicyFailed = "PolicyFailed"

	// ReasonApplied says that the object is applied on the target.
	ReasonApplied = "Applied"
	// ReasonRefused says that the target refused the object. The message quotes the
	// target.
	ReasonRefused = "Refused"
	// ReasonOwnershipConflict says that the object on the target or on the hub belongs
	// to another owner, and was not changed.
	ReasonOwnershipConflict = "OwnershipConflict"
	// ReasonFieldConflict says that another field manager owns fields of the object on
	// the target.
	ReasonFieldConflict = "FieldConflict"
	// ReasonNotAllowed says that the target does not allow the object in spec.allow.
	ReasonNotAllowed = "NotAllowed"
	// ReasonUnknownKind says that the cluster does not have the kind.
	ReasonUnknownKind = "UnknownKind"
	// ReasonInvalidTemplate says that the template cannot be read, or a setting of the
	// object is malformed.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonFinished says that the object has ended, and is not applied again.
	ReasonFinished = "Finished"
	// ReasonApplying says that the object waits for another object that is sent first.
	ReasonApplying = "Applying"
	// ReasonNamespaceInUse says that a Namespace is kept on the target, because it
	// contains objects of others.
	ReasonNamespaceInUse = "NamespaceInUse"
	// ReasonWithdrawing says that the object is being deleted on the target.
	ReasonWithdrawing = "Withdrawing"
	// ReasonPartiallyApplied says that some resources of an application are not applied.
	ReasonPartiallyApplied = "PartiallyApplied"

	// ReasonDependencyMissing says that a Secret, ConfigMap or ServiceAccount that the
	// object needs does not exist on the hub.
	ReasonDependencyMissing = "DependencyMissing"
	// ReasonNeverSent says that the object needs a Secret or ConfigMap that is never sent,
	// such as a token of the hub.
	ReasonNeverSent = "NeverSent"
	// ReasonNoNamespace says that an object without a namespace cannot have Secrets next
	// to it.
	ReasonNoNamespace = "NoNamespace"

	// ReasonChangedOnTarget says that the object was changed on the target, and the
	// change is kept.
	ReasonChangedOnTarget = "ChangedOnTarget"
	// ReasonDeletedOnTarget says that the object was deleted on the target, and is not
	// created again.
	ReasonDeletedOnTarget = "DeletedOnTarget"
	// ReasonUnchanged says that the applied fields have not changed on the target.
	ReasonUnchanged = "Unchanged"

	// ReasonObserved says that the whole object is in status.observed.
	ReasonObserved = "Observed"
	// ReasonTooLarge says that the object is too large for the status.
	ReasonTooLarge = "TooLarge"

	// ReasonAvailable says that the object works.
	ReasonAvailable = "Available"
	// ReasonProgressing says that the object does not work yet.
	ReasonProgressing = "Progressing"
	// ReasonFailed says that the object does not work, and waiting does not help.
	ReasonFailed = "Failed"
	// ReasonReadinessFailed says that the expression in spec.readiness cannot be
	// evaluated.
	ReasonReadinessFailed = "ReadinessFailed"

	// ReasonReachable says that the target answers.
	ReasonReachable = "Reachable"
	// ReasonUnreachable says that the target does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonProbeFailed says that the target did not answer the last probe. The target
	// remains reachable until more probes fail.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonConnecting says that the target has not been probed yet.
	ReasonConnecting = "Connecting"
	// ReasonTargetMissing says that the KubernetesTarget does not exist.
	ReasonTargetMissing = "TargetMissing"
	// ReasonSecretMissing says that the connection Secret does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonInvalidConnection says that the connection Secret cannot be used. The
	// message names the key.
	ReasonInvalidConnection = "InvalidConnection"
	// ReasonUnauthorized says that the target does not accept the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonAddressRefused says that the endpoint of a target resolves to an address
	// that is not allowed.
	ReasonAddressRefused = "AddressRefused"
	// ReasonTargetMisbehaves says that the target sends more than the limits allow.
	ReasonTargetMisbehaves = "TargetMisbehaves"

	// ReasonInvalidClusterRef says that the reference in spec.clusterRef is malformed.
	ReasonInvalidClusterRef = "InvalidClusterRef"
	// ReasonClusterMissing says that the managed cluster does not exist.
	ReasonClusterMissing = "ClusterMissing"
	// ReasonClusterNotBound says that the managed cluster is not ready.
	ReasonClusterNotBound = "ClusterNotBound"
	// ReasonSecretNotControlled says that the connection Secret is not controlled by the
	// resource that names it.
	ReasonSecretNotControlled = "SecretNotControlled"
	// ReasonPermissionMissing says that Portico may not read the managed cluster. The
	// message contains the command that grants the right.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonImpersonationRefused says that the credential may not impersonate the user
	// in spec.impersonate.
	ReasonImpersonationRefused = "ImpersonationRefused"

	// ReasonHubIdentityConflict says that another Portico with the identity of this
	// hub writes to the target's cluster.
	ReasonHubIdentityConflict = "HubIdentityConflict"
	// ReasonLeaseHeld says that this hub holds its Lease on the target's cluster.
	ReasonLeaseHeld = "LeaseHeld"
	// ReasonNoLease says that the connection has no right to the Lease, or the namespace
	// of the Lease does not exist.
	ReasonNoLease = "NoLease"

	// ReasonServed says that objects of the kind of a PropagationKind are sent.
	ReasonServed = "Served"
	// ReasonKindMissing says that the hub does not have the kind of a PropagationKind.
	ReasonKindMissing = "KindMissing"
	// ReasonKindClusterScoped says that the kind of a PropagationKind has no namespaces.
	ReasonKindClusterScoped = "KindClusterScoped"
	// ReasonRoleMissing says that Portico has no rights to the kind of a PropagationKind.
	// The message has the rule that grants them.
	ReasonRoleMissing = "RoleMissing"
	// ReasonInvalidKind says that a field of a PropagationKind is malformed. Admission
	// refuses it, and may have been unavailable.
	ReasonInvalidKind = "InvalidKind"

	// ReasonCredentialCurrent says that the credential of the target is valid.
	ReasonCredentialCurrent = "CredentialCurrent"
	// ReasonCredentialExpiring says that the credential of the target ends soon.
	ReasonCredentialExpiring = "CredentialExpiring"
	// ReasonCredentialExpired says that the credential of the target has ended.
	ReasonCredentialExpired = "CredentialExpired"
)

// Reasons of events that are not conditions.
const (
	// EventMovingIn is emitted when an object on the hub begins to move to a target.
	EventMovingIn = "MovingToTarget"
	// EventMoved is emitted when an object runs only on its target.
	EventMoved = "MovedToTarget"
	// EventMovedToHub is emitted when an object runs on the hub again.
	EventMovedToHub = "CameHome"
	// EventReleased is emitted when an object remains on its target, and its resource on
	// the hub is gone.
	EventReleased = "Released"
	// EventRecovered is emitted when a target answers again.
	EventRecovered = "TargetRecovered"
	// EventNameTaken is emitted when an object of another owner has the name that
	// Portico needs.
	EventNameTaken = "NameTaken"
	// EventDriftReverted is emitted when a change on the target was reverted. It names
	// the fields.
	EventDriftReverted = "DriftReverted"
	// EventDriftFound is emitted when a change on the target was found and kept. It
	// names the fields.
	EventDriftFound = "DriftFound"
	// EventDriftEnded is emitted when the applied fields have their values on the target
	// again.
	EventDriftEnded = "DriftEnded"
	// EventPublished is emitted on a claim when its target is published.
	EventPublished = "Published"
	// EventMoving is emitted when an application moves to another target.
	EventMoving = "MovingBetweenTargets"
	// EventLeft is emitted when an object was deleted on its previous target.
	EventLeft = "LeftTarget"
	// EventInUse is emitted on a target that cannot be deleted, because resources are on
	// it.
	EventInUse = "InUse"
	// EventAdopted is emitted when an existing object on the target was taken over.
	EventAdopted = "Adopted"
	// EventGivenUp is emitted when an object is left on an unreachable target.
	EventGivenUp = "GivenUp"
	// EventWaiting is emitted when a deletion waits. It gives the reason.
	EventWaiting = "WaitingToDelete"
	// EventKindGone is emitted when a resource is deleted although its object could not
	// be, because its target no longer has the kind in any version.
	EventKindGone = "KindGone"
	// EventOptedIn is emitted when Portico labels an existing object, because its
	// namespace opts in existing objects.
	EventOptedIn = "OptedIn"
	// EventRemainsOnHub is emitted on an object that runs on the hub although its namespace
	// opts in.
	EventRemainsOnHub = "StaysOnHub"
)

// ResourceState is the state of a resource or an application in one word, as in S0.
type ResourceState string

// The states of S0.
const (
	StatePending            ResourceState = "Pending"
	StateScheduled          ResourceState = "Scheduled"
	StatePartiallySubmitted ResourceState = "PartiallySubmitted"
	StateSubmitted          ResourceState = "Submitted"
	StateFailed             ResourceState = "Failed"
	StateDeleting           ResourceState = "Deleting"
)
