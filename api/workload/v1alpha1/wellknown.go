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

	// ManagedByLabel is on every object Portico makes on a target; its value
	// is the identity of the hub, the UID of its namespace kube-system.
	ManagedByLabel = Group + "/managed-by"
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
	// IntentAnnotation records what admission alone can tell: which of the
	// fields the hub allocates were the user's own. See kinds.Intent.
	IntentAnnotation = Group + "/intent"
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
	// ContentAnnotation is on a Secret or ConfigMap that travels under its own
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
	// Drifted says whether the object on the target was changed there, and is left
	// so. It is there only where drift is reported, not corrected.
	Drifted = "Drifted"
	// Observed says whether the whole object on the target is shown. It is there
	// only where that was asked for.
	Observed = "Observed"
	// CredentialValid says when a target's credential ends, where that can be
	// known, and whether that is soon, or past.
	CredentialValid = "CredentialValid"
)

// Condition reasons, which are also the reasons of events.
const (
	ReasonScheduled        = "Scheduled"
	ReasonNoMatchingTarget = "NoMatchingTarget"
	ReasonNotScheduled     = "NotScheduled"
	ReasonCannotMove       = "CannotMove"
	ReasonTargetReleased   = "TargetReleased"
	ReasonDeniedByPolicy   = "DeniedByPolicy"
	ReasonPolicyFailed     = "PolicyFailed"

	ReasonApplied           = "Applied"
	ReasonRefused           = "Refused"
	ReasonOwnershipConflict = "OwnershipConflict"
	// ReasonFieldConflict says that somebody else applies fields of the object.
	ReasonFieldConflict    = "FieldConflict"
	ReasonNotAllowed       = "NotAllowed"
	ReasonUnknownKind      = "UnknownKind"
	ReasonInvalidTemplate  = "InvalidTemplate"
	ReasonApplying         = "Applying"
	ReasonWithdrawing      = "Withdrawing"
	ReasonPartiallyApplied = "PartiallyApplied"

	// Why something that an object needs is not next to it.
	ReasonDependencyMissing = "DependencyMissing"
	ReasonNeverSent         = "NeverSent"
	ReasonNoNamespace       = "NoNamespace"

	// Whether the object on the target was changed there by others.
	ReasonChangedOnTarget = "ChangedOnTarget"
	ReasonDeletedOnTarget = "DeletedOnTarget"
	ReasonUnchanged       = "Unchanged"

	// Whether all of it is shown.
	ReasonObserved = "Observed"
	ReasonTooLarge = "TooLarge"

	ReasonAvailable   = "Available"
	ReasonProgressing = "Progressing"
	ReasonFailed      = "Failed"
	// ReasonReadinessFailed says that the expression that tells whether an object
	// works cannot be evaluated.
	ReasonReadinessFailed = "ReadinessFailed"

	ReasonReachable         = "Reachable"
	ReasonUnreachable       = "Unreachable"
	ReasonConnecting        = "Connecting"
	ReasonTargetMissing     = "TargetMissing"
	ReasonSecretMissing     = "SecretMissing"
	ReasonInvalidConnection = "InvalidConnection"
	ReasonUnauthorized      = "Unauthorized"

	// Why the managed cluster that a target names is not published.
	ReasonInvalidClusterRef   = "InvalidClusterRef"
	ReasonClusterMissing      = "ClusterMissing"
	ReasonClusterNotBound     = "ClusterNotBound"
	ReasonSecretNotControlled = "SecretNotControlled"
	ReasonPermissionMissing   = "PermissionMissing"
	// ReasonImpersonationRefused says that the target does not let the connection
	// act as whom the KubernetesTarget names.
	ReasonImpersonationRefused = "ImpersonationRefused"

	ReasonCredentialCurrent  = "CredentialCurrent"
	ReasonCredentialExpiring = "CredentialExpiring"
	ReasonCredentialExpired  = "CredentialExpired"
)

// Reasons of events that are not conditions.
const (
	EventAccepted      = "Accepted"
	EventMovingIn      = "MovingToTarget"
	EventMoved         = "MovedToTarget"
	EventComingHome    = "ComingHome"
	EventHome          = "CameHome"
	EventWithdrawn     = "Withdrawn"
	EventReleased      = "Released"
	EventRecovered     = "TargetRecovered"
	EventNameTaken     = "NameTaken"
	EventDriftReverted = "DriftReverted"
	EventDriftFound    = "DriftFound"
	EventDriftEnded    = "DriftEnded"
	EventPublished     = "Published"
	EventMoving        = "MovingBetweenTargets"
	EventLeft          = "LeftTarget"
	EventInUse         = "InUse"
	EventAdopted       = "Adopted"
	EventGivenUp       = "GivenUp"
	EventWaiting       = "WaitingToDelete"
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
