package v1alpha1

// Group is the API group of Portico's kinds and the prefix of its own labels,
// annotations and finalizers.
const Group = "workload.crossplane.io"

// Labels.
const (
	// ScheduleLabel opts an object, or every Deployment and Service created in
	// a namespace, in to running on a target. In a Deployment's pod template
	// it marks the Deployment as held still on the hub.
	ScheduleLabel = Group + "/schedule"
	// ScheduleRemote runs the object on a target.
	ScheduleRemote = "remote"
	// ScheduleLocal keeps the object on the hub, in a namespace that opts in.
	ScheduleLocal = "local"

	// ApplicationLabel names the KubernetesApplication a native object belongs
	// to; without it the namespace's label decides, and then DefaultApplication.
	ApplicationLabel = Group + "/application"
	// DefaultApplication is the application of objects that name none.
	DefaultApplication = "default"

	// FrontDoorLabel marks the applications and resources that Portico made
	// from native objects, as opposed to those a user wrote.
	FrontDoorLabel = Group + "/front-door"
	// FrontDoor is FrontDoorLabel's only value.
	FrontDoor = "true"

	// ConnectionLabel marks the Secrets in Portico's own namespace that keep
	// connections of targets.
	ConnectionLabel = Group + "/connection"
	// ConnectionLabelPrivate is ConnectionLabel's only value.
	ConnectionLabelPrivate = "private"

	// ManagedByLabel is on every object Portico makes on a target; its value
	// is the identity of the hub, the UID of its namespace kube-system.
	ManagedByLabel = Group + "/managed-by"
	// HubNamespaceLabel is on every object Portico makes on a target; its value is
	// the namespace, on the hub, of the resource that the object belongs to. Portico
	// watches the objects of each namespace by it.
	HubNamespaceLabel = Group + "/hub-namespace"
)

// Annotations on the hub.
const (
	// TargetSelectorAnnotation selects targets by label, in label-selector
	// syntax ("env=prod,region in (eu-1,eu-2)"), on an object or its namespace.
	TargetSelectorAnnotation = Group + "/target-selector"
	// TolerationsAnnotation lets an object's application be scheduled to tainted
	// targets, in the syntax of kubectl taint ("key=value:NoSchedule,other"), on
	// an object or its namespace.
	TolerationsAnnotation = Group + "/tolerations"
	// MoveFromAnnotation asks the scheduler to move a KubernetesApplication off
	// the target it names, if that is where it is. The scheduler removes it.
	MoveFromAnnotation = Group + "/move-from"
	// ReleaseAnnotation on a KubernetesTarget, with the value "true", lets it be
	// deleted although resources are on it. What they made there stays behind. On
	// a KubernetesApplication or KubernetesApplicationResource that is being
	// deleted it does the same of that alone, if its target is away.
	ReleaseAnnotation = Group + "/release"
	// ForceAnnotation, with the value "true", on a native object, or on a
	// KubernetesApplicationResource or its template in an application, takes the
	// fields it asks for from whoever else applies them on the target.
	ForceAnnotation = Group + "/force"
	// AdoptAnnotation says what becomes of an object that exists on the target and
	// is not Portico's, or is another's: see AdoptionPolicy. It is on a native
	// object, or on a KubernetesApplicationResource or its template in an
	// application.
	AdoptAnnotation = Group + "/adopt"
	// DeletionAnnotation says what becomes of the object on the target when its
	// KubernetesApplicationResource is deleted: see DeletionPolicy. It is where
	// AdoptAnnotation is.
	DeletionAnnotation = Group + "/deletion"
	// DriftAnnotation says what becomes of what somebody changes by hand, on a
	// target, of what Portico applied there: see DriftPolicy. It is on a native
	// object, on a KubernetesApplicationResource or its template in an application,
	// or on a namespace, for all that says nothing itself.
	DriftAnnotation = Group + "/drift"
	// ObserveAnnotation on a native object is spec.observe of its
	// KubernetesApplicationResource: see ObservePolicy.
	ObserveAnnotation = Group + "/observe"
	// AdoptExistingAnnotation on a namespace that opts in, with the value "true",
	// also opts in the Deployments and Services that were there before.
	AdoptExistingAnnotation = Group + "/adopt-existing"
	// IntentAnnotation records what admission alone can tell: which of the
	// fields the hub allocates were the user's own. See kinds.Intent.
	IntentAnnotation = Group + "/intent"
	// FenceHolderAnnotation on the Lease of the leader election names the process that
	// leads this hub, as the Leases on targets do. The next leader takes those over
	// from it.
	FenceHolderAnnotation = Group + "/fence-holder"
	// TemplatedAnnotation on a KubernetesApplicationResource lists the labels and
	// annotations that its application's template gave it, so that those that the
	// template no longer has are told from those of others; it is there, and empty,
	// also when there are none. It tells whose a resource is whose owner was left
	// out of a backup.
	TemplatedAnnotation = Group + "/templated"
	// RollAnnotation, with the value "true", on a Deployment or its
	// KubernetesApplicationResource, replaces its Pods on the target when
	// something changes that they read as they start: an environment variable
	// from a Secret or ConfigMap.
	RollAnnotation = Group + "/roll-on-change"
	// CopiedFromAnnotation on a Secret names the managed cluster whose connection
	// Portico copied there for a KubernetesTarget that names it in clusterRef.
	CopiedFromAnnotation = Group + "/copied-from"
	// ConnectionOfAnnotation on a Secret in Portico's own namespace names the
	// KubernetesTarget, by namespace and name, whose connection it keeps.
	ConnectionOfAnnotation = Group + "/connection-of"
)

// AggregateToPorticoLabel on a ClusterRole, with the value "true", gives Portico
// its rules. That is how it comes to read kinds of managed clusters, none of
// which it knows in advance.
const AggregateToPorticoLabel = "rbac." + Group + "/aggregate-to-portico"

// Annotations on a target's objects: which resource on the hub they belong to
// (S0, Controller Ownership), and what was last sent.
const (
	ResourceUIDAnnotation       = "kubernetesapplicationresource." + Group + "/uid"
	ResourceNamespaceAnnotation = "kubernetesapplicationresource." + Group + "/namespace"
	ResourceNameAnnotation      = "kubernetesapplicationresource." + Group + "/name"

	// HubGenerationAnnotation is the generation of the native object on the
	// hub that was projected; it lets observedGeneration be translated. It is
	// on resources too. See kinds.HubGeneration.
	HubGenerationAnnotation = Group + "/hub-generation"
	// AppliedAnnotation is the digest of what was last applied; it tells a
	// field that was removed on the hub from one that others added here.
	AppliedAnnotation = Group + "/applied"
	// CopyAnnotation is on the Secrets and ConfigMaps that were propagated for an
	// object; it names the original on the hub.
	CopyAnnotation = Group + "/copy-of"
	// ContentAnnotation is on a Secret or ConfigMap that is sent under its own
	// name; it counts the states of what is in it, and tells them apart.
	ContentAnnotation = Group + "/content"
	// EnvironmentAnnotation is in a Pod template whose Pods are replaced when
	// what they read as they start changes; it tells one state of that from
	// another. See RollAnnotation.
	EnvironmentAnnotation = Group + "/environment"
)

// Annotations that the first implementation of S0 put on a target's objects. Its
// objects are this hub's resources' of the same name.
const (
	LegacyUIDAnnotation       = "KubernetesApplication." + Group + "/uid"
	LegacyNamespaceAnnotation = "KubernetesApplication." + Group + "/namespace"
	LegacyNameAnnotation      = "KubernetesApplication." + Group + "/name"
)

// AdoptionPolicy is what becomes of an object that a resource finds on its target
// where it would make one.
type AdoptionPolicy string

// The policies of adoption. An object that a controller on the target owns is
// never taken: its owner would change it back, or delete it.
const (
	// AdoptNever leaves it alone. It is the default.
	AdoptNever AdoptionPolicy = "Never"
	// AdoptIfUnowned takes it if it is no other resource's, of any hub.
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"
	// AdoptForce takes it from another resource as well, once: from whom it is
	// taken back, it does not take it again.
	AdoptForce AdoptionPolicy = "Force"
)

// DeletionPolicy is what becomes of an object on a target when its resource is
// deleted.
type DeletionPolicy string

// The policies of deletion.
const (
	// DeletionDelete deletes it. It is the default.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves it there, and what it needs, without Portico's marks.
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

// RemoteLoadBalancerClass keeps the hub's cloud controller away from a Service
// of type LoadBalancer that runs on a target.
const RemoteLoadBalancerClass = Group + "/remote"

// PropagationFinalizer keeps a KubernetesApplicationResource until its object
// is gone from the target.
const PropagationFinalizer = Group + "/propagation"

// TemplatesFinalizer keeps a KubernetesApplication until the resources that it
// templates are gone.
const TemplatesFinalizer = Group + "/templates"

// InUseFinalizer keeps a KubernetesTarget until no resource is on it.
const InUseFinalizer = Group + "/in-use"

// PublishVerb is what a person must be allowed to do with a managed cluster to
// publish it by a KubernetesTarget. No request of the API has this verb; RBAC
// rules do, and Portico asks for it.
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
)

// Keys of a connection Secret (S1, S3). A kubeconfig wins over the others.
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
	// Synced is Crossplane's: what the object asks for was done.
	Synced = "Synced"
	// Ready is Crossplane's: what was asked for works.
	Ready = "Ready"
	// Scheduled says whether a target was chosen, and why not.
	Scheduled = "Scheduled"
	// SecretsReady says whether the Secrets and ConfigMaps that an object needs
	// are next to it, and which are not.
	SecretsReady = "SecretsReady"
	// TargetReachable says whether the target answers, and since when not.
	TargetReachable = "TargetReachable"
	// Published says whether the target of a claim is as the claim asks. It is
	// there only once the publish policies refused a change of the claim.
	Published = "Published"
	// Drifted says whether the object on the target was changed there, and is left
	// so. It is there only where drift is reported, not corrected.
	Drifted = "Drifted"
	// Observed says whether the whole object on the target is shown. It is there
	// only where that was asked for.
	Observed = "Observed"
	// Fenced says whether this hub holds its Lease on the target's cluster, so that no
	// other Portico of the same identity writes there. It is Unknown where the
	// connection has no right to the Lease.
	Fenced = "Fenced"
	// CredentialValid says when a target's credential ends, where that can be
	// known, and whether that is soon, or past.
	CredentialValid = "CredentialValid"
)

// Condition reasons, which are also the reasons of events.
const (
	// ReasonScheduled says that a target was chosen.
	ReasonScheduled = "Scheduled"
	// ReasonNoMatchingTarget says that no target matches; the message gives the reason for
	// each.
	ReasonNoMatchingTarget = "NoMatchingTarget"
	// ReasonNotScheduled says that nothing was sent, because no target was chosen yet.
	ReasonNotScheduled = "NotScheduled"
	// ReasonMoving says that a resource has another target, and is not ready there yet.
	ReasonMoving = "Moving"
	// ReasonCannotMove says that an application shall leave its target, and no other
	// matches.
	ReasonCannotMove = "CannotMove"
	// ReasonTargetReleased says that the target was deleted and its objects were given up.
	ReasonTargetReleased = "TargetReleased"
	// ReasonDeniedByPolicy says that a policy denies the object.
	ReasonDeniedByPolicy = "DeniedByPolicy"
	// ReasonPolicyFailed says that a policy could not be evaluated, and its
	// failurePolicy is Fail.
	ReasonPolicyFailed = "PolicyFailed"

	// ReasonApplied says that the object is applied on the target.
	ReasonApplied = "Applied"
	// ReasonRefused says that the target refused the object; the message quotes the
	// target.
	ReasonRefused = "Refused"
	// ReasonOwnershipConflict says that the object, on the target or on the hub, belongs
	// to somebody else, and was not touched.
	ReasonOwnershipConflict = "OwnershipConflict"
	// ReasonFieldConflict says that somebody else applies fields of the object on the
	// target.
	ReasonFieldConflict = "FieldConflict"
	// ReasonNotAllowed says that spec.allow of the target excludes the object.
	ReasonNotAllowed = "NotAllowed"
	// ReasonUnknownKind says that the cluster does not have the kind.
	ReasonUnknownKind = "UnknownKind"
	// ReasonInvalidTemplate says that the template cannot be read, or that a setting of
	// the object is malformed.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonApplying says that the object waits for another object that is sent first.
	ReasonApplying = "Applying"
	// ReasonNamespaceInUse: a Namespace is not deleted on the target while it holds
	// objects of others.
	ReasonNamespaceInUse = "NamespaceInUse"
	// ReasonWithdrawing says that the object is being deleted on the target.
	ReasonWithdrawing = "Withdrawing"
	// ReasonPartiallyApplied says that some resources of an application are not applied.
	ReasonPartiallyApplied = "PartiallyApplied"

	// ReasonDependencyMissing says that a Secret or ConfigMap that the object needs does
	// not exist on the hub.
	ReasonDependencyMissing = "DependencyMissing"
	// ReasonNeverSent says that the object needs a Secret or ConfigMap that is never sent,
	// such as a token of the hub.
	ReasonNeverSent = "NeverSent"
	// ReasonNoNamespace says that an object without a namespace cannot have Secrets next
	// to it.
	ReasonNoNamespace = "NoNamespace"

	// ReasonChangedOnTarget says that somebody changed the object on the target, and
	// the change is left.
	ReasonChangedOnTarget = "ChangedOnTarget"
	// ReasonDeletedOnTarget says that somebody deleted the object on the target, and
	// it is not created again.
	ReasonDeletedOnTarget = "DeletedOnTarget"
	// ReasonUnchanged says that the object on the target is as it was applied.
	ReasonUnchanged = "Unchanged"

	// ReasonObserved says that status.observed holds the whole object.
	ReasonObserved = "Observed"
	// ReasonTooLarge says that the object is too large to be shown.
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
	// ReasonProbeFailed says that the target did not answer the last probe. Nothing else
	// changes before more probes fail.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonConnecting says that the target was not asked yet.
	ReasonConnecting = "Connecting"
	// ReasonTargetMissing says that the KubernetesTarget does not exist.
	ReasonTargetMissing = "TargetMissing"
	// ReasonSecretMissing says that the connection Secret does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonInvalidConnection says that the connection Secret cannot be used; the message
	// names the key.
	ReasonInvalidConnection = "InvalidConnection"
	// ReasonUnauthorized says that the target does not accept the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonAddressRefused says that the endpoint of a target resolves to an
	// address that no target may have.
	ReasonAddressRefused = "AddressRefused"
	// ReasonTargetMisbehaves says that the target sends more than one target may.
	ReasonTargetMisbehaves = "TargetMisbehaves"

	// ReasonInvalidClusterRef says that spec.clusterRef is malformed.
	ReasonInvalidClusterRef = "InvalidClusterRef"
	// ReasonClusterMissing says that the managed cluster does not exist.
	ReasonClusterMissing = "ClusterMissing"
	// ReasonClusterNotBound says that the managed cluster is not ready to be used.
	ReasonClusterNotBound = "ClusterNotBound"
	// ReasonSecretNotControlled says that the connection Secret is not controlled by the
	// resource that names it.
	ReasonSecretNotControlled = "SecretNotControlled"
	// ReasonPermissionMissing says that Portico may not read the managed cluster; the
	// message has the command that allows it.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonImpersonationRefused says that the target does not let the credentials act as
	// the user in spec.impersonate.
	ReasonImpersonationRefused = "ImpersonationRefused"

	// ReasonHubIdentityConflict says that another Portico with the identity of this
	// hub writes to the target's cluster.
	ReasonHubIdentityConflict = "HubIdentityConflict"
	// ReasonLeaseHeld says that this hub holds its Lease on the target's cluster.
	ReasonLeaseHeld = "LeaseHeld"
	// ReasonNoLease says that the connection has no right to the Lease, or that its
	// namespace does not exist.
	ReasonNoLease = "NoLease"

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
	// EventMoved is emitted when an object runs on its target only.
	EventMoved = "MovedToTarget"
	// EventMovedToHub is emitted when an object runs on the hub again.
	EventMovedToHub = "CameHome"
	// EventReleased is emitted when an object stays on its target without a resource on
	// the hub.
	EventReleased = "Released"
	// EventRecovered is emitted when a target answers again.
	EventRecovered = "TargetRecovered"
	// EventNameTaken is emitted when the name that Portico would use belongs to an object
	// of somebody else.
	EventNameTaken = "NameTaken"
	// EventDriftReverted is emitted when a change on the target was changed back; it names
	// the fields.
	EventDriftReverted = "DriftReverted"
	// EventDriftFound is emitted when a change on the target was found and left; it names
	// the fields.
	EventDriftFound = "DriftFound"
	// EventDriftEnded is emitted when the object on the target is again as it was applied.
	EventDriftEnded = "DriftEnded"
	// EventPublished is emitted on a claim when its target is published.
	EventPublished = "Published"
	// EventMoving is emitted when an application moves to another target.
	EventMoving = "MovingBetweenTargets"
	// EventLeft is emitted when an object was deleted on the target that it left.
	EventLeft = "LeftTarget"
	// EventInUse is emitted on a target that is not deleted because resources are on it.
	EventInUse = "InUse"
	// EventAdopted is emitted when an object that existed on the target was taken over.
	EventAdopted = "Adopted"
	// EventGivenUp is emitted when an object was given up on a target that does not
	// answer.
	EventGivenUp = "GivenUp"
	// EventWaiting is emitted when a deletion waits, with the reason.
	EventWaiting = "WaitingToDelete"
	// EventKindGone is emitted when a resource is let go because its target no longer
	// has the kind of its object, in any version.
	EventKindGone = "KindGone"
	// EventOptedIn is emitted when an object was labelled because its namespace opts in
	// what was there before.
	EventOptedIn = "OptedIn"
	// EventRemainsOnHub is emitted on an object that runs on the hub although its namespace
	// opts in.
	EventRemainsOnHub = "StaysOnHub"
)

// ResourceState is S0's one-word status of a resource or an application.
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
