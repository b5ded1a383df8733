package consumers

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// rows returns all cases by name.
func rows() map[string]row {
	out := deploymentRows()
	maps.Copy(out, serviceRows())
	return out
}

// The most frequent messages of the consumers.
const (
	rolledOut  = `deployment "web" successfully rolled out`
	unobserved = "Waiting for deployment spec update to be observed..."
	ready3     = "Deployment is available. Replicas: 3"
	outdated4  = "Deployment generation is 4, but latest observed generation is 3"
	nothing    = "ReplicaSet is not ready: default/web-2. observedGeneration (0) does not match spec generation (1)."
)

// never is the status of a Deployment before Portico's first write.
var never = appsv1.DeploymentStatus{}

func deploymentRows() map[string]row {
	out := map[string]row{}
	for _, rows := range []map[string]row{generationRows(), rolloutRows(), failureRows(), wishRows(), absenceRows()} {
		maps.Copy(out, rows)
	}
	return out
}

// generationRows have statuses of different generations.
func generationRows() map[string]row {
	return map[string]row{
		"TargetCountsAhead": {
			reason:  "All Pods of this generation are available. The target's generation is higher than the hub's.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"TargetCountsBehind": {
			reason:  "The target's generation is lower than the hub's. A copied generation would never reach the hub's.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 1, stamp: 4, status: counts(1, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"EditedOnTheHub": {
			reason:  "The target completed the generation before. Its own generation is higher, and a copy of it would look complete.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"NothingToSend": {
			reason:   "The hub's newest generation changed nothing that is sent, such as an annotation of kubectl. The target is complete for it.",
			hub:      deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:   &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			template: 3,
			kubectl:  done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"AppliedNotObserved": {
			reason:     "The target has the new spec, and its controller has not observed it. The counts are of the generation before.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 8, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"ChangedOnTheTarget": {
			reason:     "A user scaled the object on the target, and its controller has not observed this. On the hub nothing changed, so the observed generation stays.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 8, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 4,
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"HubControllerWroteStatus": {
			reason:     "The status webhook was unavailable, and the hub's own controller observed an edit. Portico reverts this status.",
			hub:        deployment(4, 3, counts(4, 0, 0, 0, 0, 3, unavailable, progressing)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"SlowHubCache": {
			reason:  "The target completed an edit that the status controller has not read yet. The controller writes the older generation, and corrects it when it has read the edit.",
			hub:     deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 8, stamp: 5, status: counts(8, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"MarksRemovedOnTheTarget": {
			reason:     "A user removed the annotation with the generation. Until Portico restores it, the generation of the status is unknown.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, status: counts(7, 3, 3, 3, 3, 0, available, complete), unstamped: true},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"ShadowNotMade": {
			reason:  "The target was faster than the hub's Deployment controller. Helm 3 reads the ReplicaSet, and waits until it exists.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			unmade:  true,
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: waiting(""), argoCD: "Healthy",
		},
	}
}

// rolloutRows are the steps of a successful rollout.
func rolloutRows() map[string]row {
	return map[string]row{
		"FirstPodsStarting": {
			reason:  "The first rollout began. No Pod is ready.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 0 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 0/3"),
			helm3:   waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"HalfUpdated": {
			reason:  "Two of three Pods are new, and one old Pod still exists.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 2, 3, 3, 1, available, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus: waiting("Updated: 2/3"),
			helm3:   waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"OldPodsTerminating": {
			reason:  "All new Pods exist. One of the three ready Pods may be old. Helm 3 counts only new Pods, so it gets two.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 3, 3, 3, 1, available, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 old replicas are pending termination...`),
			kstatus: waiting("Pending termination: 1"),
			helm3:   waiting("Deployment is not ready: default/web. 2 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"ReadyNotAvailable": {
			reason:  "The time of minReadySeconds is not over. Helm 3 counts ready Pods only, on any cluster.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 1, 2, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 1/3"),
			helm3:   done(""), argoCD: "Progressing",
		},
		"AvailableNotConcluded": {
			reason:  "All Pods are available, and the target's controller has not updated the condition. kstatus waits for the condition.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, progressing)},
			kubectl: done(rolledOut),
			kstatus: waiting("ReplicaSet not Available"),
			helm3:   done(""), argoCD: "Healthy",
		},
		"NoProgressDeadline": {
			reason:  "Without a deadline the target's controller writes no condition Progressing, and no tool waits for it.",
			hub:     deployment(4, 3, never, noProgressDeadline),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
	}
}

// failureRows are rollouts that fail on the target.
func failureRows() map[string]row {
	const exceeded = `deployment "web" exceeded its progress deadline`
	return map[string]row{
		"BadImage": {
			reason:  "A first rollout with a bad image fails at the deadline. Helm 3 waits until its timeout, on any cluster.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, stuck)},
			kubectl: failed(exceeded), kstatus: failed("Progress deadline exceeded"),
			helm3: waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"), argoCD: "Degraded",
		},
		"BadImageNotYetGivenUp": {
			reason:  "Before the deadline a rollout with a bad image is in progress.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 0 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 0/3"),
			helm3:   waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"BadUpdate": {
			reason:  "The old Pods still run, and the update failed. None of the three ready Pods is new.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 3, 3, 1, available, stuck)},
			kubectl: failed(exceeded), kstatus: failed("Progress deadline exceeded"),
			helm3: waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"), argoCD: "Degraded",
		},
		"BadUpdateCorrected": {
			reason:  "The user corrected the image. The failure is of the generation before, so the rollout has not failed.",
			hub:     deployment(5, 3, counts(4, 4, 1, 3, 3, 1, available, stuck)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 3, 3, 1, available, stuck)},
			kubectl: waiting(unobserved),
			kstatus: waiting("Deployment generation is 5, but latest observed generation is 4"),
			helm3:   waiting(nothing), argoCD: "Progressing",
		},
		"QuotaExceeded": {
			reason:  "A quota on the target limits the Pods. A condition reports this, and the rollout fails at the deadline.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 2, 2, 2, 2, 1, unavailable, progressing, quotaExceeded)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus: waiting("Replicas: 2/3"),
			helm3:   waiting("Deployment is not ready: default/web. 2 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"CountsDisagree": {
			reason:  "The target counts more available Pods than ready ones, and more ready Pods than Pods. The hub would reject this, so the lower count is written.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 4, 5, 6, 0, available, complete)},
			odd:     true,
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"AvailableBeyondReady": {
			reason:  "Only ready Pods count as available.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 1, 3, 0, available, complete)},
			odd:     true,
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 1/3"),
			helm3:   waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
	}
}

// wishRows are changes of a Deployment other than that of the image.
func wishRows() map[string]row {
	return map[string]row{
		"PausedWhenDone": {
			reason:  "The user paused a complete rollout. kstatus waits for a paused Deployment, and Helm 3 does not, on any cluster.",
			hub:     deployment(4, 3, never, paused),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, pausedOnward)},
			kubectl: done(rolledOut), kstatus: waiting("ReplicaSet not Available"), helm3: done(""), argoCD: "Suspended",
		},
		"PausedHalfway": {
			reason:  "The user paused a rollout that is in progress.",
			hub:     deployment(4, 3, never, paused),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 4, 4, 0, available, pausedOnward)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 out of 3 new replicas have been updated...`),
			kstatus: waiting("Updated: 1/3"),
			helm3:   done(""), argoCD: "Suspended",
		},
		"ScaledToZero": {
			reason:  "The Deployment has no replicas, and the target has no Pods.",
			hub:     deployment(4, 0, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 0, 0, 0, 0, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done("Deployment is available. Replicas: 0"), helm3: done(""), argoCD: "Healthy",
		},
		"ScalingToZero": {
			reason:  "The Deployment has no replicas, and the target still has three Pods, because the change was not sent.",
			hub:     deployment(4, 0, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"NeverRanAtZero": {
			reason:  "The Deployment has no replicas and no target. No generation was observed.",
			hub:     deployment(1, 0, never),
			kubectl: waiting(unobserved),
			kstatus: waiting("ReplicaSet not Available"),
			helm3:   waiting(nothing), argoCD: "Progressing",
		},
		"ScaledUp": {
			reason:  "The Deployment was scaled up by two, and the new Pods are not available.",
			hub:     deployment(4, 5, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 5, 5, 3, 3, 2, unavailable, complete)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 3 of 5 updated replicas are available...`),
			kstatus: waiting("Available: 3/5"),
			helm3:   waiting("Deployment is not ready: default/web. 3 out of 4 expected pods are ready"), argoCD: "Progressing",
		},
		"TerminatingCounted": {
			reason: "A newer target counts terminating Pods. They do not count as old Pods, and the count is written.",
			hub:    deployment(4, 3, never),
			target: &observedObject{generation: 7, stamp: 4, status: func() appsv1.DeploymentStatus {
				status := counts(7, 3, 3, 3, 3, 0, available, complete)
				status.TerminatingReplicas = ptr.To(int32(2))
				return status
			}()},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
	}
}

// absenceRows have no status on the target.
func absenceRows() map[string]row {
	return map[string]row{
		"NotAppliedYet": {
			reason:  "The Deployment was just created.",
			hub:     deployment(1, 3, never),
			kubectl: waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"NoTargetMatches": {
			reason:     "The Deployment has no target, and a condition reports this. All tools wait, because a target may match later.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{homeless},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"RefusedAtFirst": {
			reason:     "The target refused the Deployment, and may accept it later.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{refused},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"UpdateRefused": {
			reason:     "The target has the generation before, and refused this one.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{refused},
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"Unreachable": {
			reason:     "The target became unreachable after the rollout. The last counts are kept, and a condition has the start of the outage.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
		"UnreachableHalfway": {
			reason:     "The target became unreachable during the rollout, so the rollout is not complete.",
			hub:        deployment(4, 3, counts(4, 4, 2, 3, 3, 1, available, progressing)),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 2, 3, 3, 1, available, progressing)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus:    waiting("Updated: 2/3"),
			helm3:      waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"EditedWhileUnreachable": {
			reason:     "An edit that was not sent is not complete.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"NeverReached": {
			reason:     "The target has not answered since the Deployment was created.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing), argoCD: "Progressing",
		},
		"DeletedOnTheTarget": {
			reason:     "A user deleted the object on the target. The new object has no status yet.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 1, stamp: 4, status: never},
			remembered: 4,
			kubectl:    waiting(`Waiting for deployment "web" rollout to finish: 0 out of 3 new replicas have been updated...`),
			kstatus:    waiting("Replicas: 0/3"),
			helm3:      waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"), argoCD: "Progressing",
		},
		"ForeignConditions": {
			reason:     "A controller on the target writes a condition with the type of one of Portico's. On the hub a type is unique.",
			hub:        deployment(4, 3, never),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete, condition("Synced", "True", "ReconcileSuccess", ""))},
			conditions: []metav1.Condition{refused},
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""), argoCD: "Healthy",
		},
	}
}
