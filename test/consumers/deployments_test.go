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
	outdated4h = "Deployment is not ready: default/web. observedGeneration (3) does not match spec generation (4)."
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
			reason:  "All Pods of this generation are available on the target, whose own count of generations is ahead of the hub's.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"TargetCountsBehind": {
			reason:  "A copied count would never reach the hub's, and nobody would ever be done.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 1, stamp: 4, status: counts(1, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"EditedOnTheHub": {
			reason:  "The target is done with the generation before. Its copied count, being ahead, would say that this one is too.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"NothingToSend": {
			reason:   "The hub's newest generation came of something that is not the target's, such as kubectl's record of what was applied. What the target has is what this generation asks for.",
			hub:      deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:   &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			template: 3,
			kubectl:  done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"AppliedNotObserved": {
			reason:     "The target has the new spec, and its controller has not looked at it: the counts are those of the generation before.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 8, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"ChangedOnTheTarget": {
			reason:     "Somebody scaled the target's copy and its controller has yet to look. Nothing changed on the hub, where what was observed stays so.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 8, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 4,
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"HubControllerWroteStatus": {
			reason:     "The shield was away while the hub's own controller looked at an edit. That controller does not speak for the target: what it observed is taken back.",
			hub:        deployment(4, 3, counts(4, 0, 0, 0, 0, 3, unavailable, progressing)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"SlowHubCache": {
			reason:  "The target is done with an edit that the status controller has not read yet. It writes what it knows of, and is right about the rest when the edit arrives.",
			hub:     deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 8, stamp: 5, status: counts(8, 3, 3, 3, 3, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"MarksRemovedOnTheTarget": {
			reason:     "Somebody removed the stamp. Until it is back nobody can say what generation the status speaks of.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, status: counts(7, 3, 3, 3, 3, 0, available, complete), unstamped: true},
			remembered: 3,
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"ShadowNotMade": {
			reason:  "The target was faster than the hub's Deployment controller. Helm 3 looks for the ReplicaSet, and waits that one moment longer.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			unmade:  true,
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: waiting(""),
		},
	}
}

// rolloutRows are the steps of a successful rollout.
func rolloutRows() map[string]row {
	return map[string]row{
		"FirstPodsStarting": {
			reason:  "The first rollout has begun: Pods are made, and none is ready.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 0 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 0/3"),
			helm3:   waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"),
		},
		"HalfUpdated": {
			reason:  "Two of three Pods are new, and the third old one is still there.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 2, 3, 3, 1, available, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus: waiting("Updated: 2/3"),
			helm3:   waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"),
		},
		"OldPodsTerminating": {
			reason:  "Every new Pod is made. Of the three that are ready one may be old, so Helm 3, which counts only new ones, is shown two.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 3, 3, 3, 1, available, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 old replicas are pending termination...`),
			kstatus: waiting("Pending termination: 1"),
			helm3:   waiting("Deployment is not ready: default/web. 2 out of 3 expected pods are ready"),
		},
		"ReadyNotAvailable": {
			reason:  "minReadySeconds are running. Helm 3 asks for ready Pods only, on any cluster.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 1, 2, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 1/3"),
			helm3:   done(""),
		},
		"AvailableNotConcluded": {
			reason:  "All Pods are available, and the target's controller has yet to conclude it. kstatus waits for the conclusion.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, progressing)},
			kubectl: done(rolledOut),
			kstatus: waiting("ReplicaSet not Available"),
			helm3:   done(""),
		},
		"NoProgressDeadline": {
			reason:  "Without a deadline the target's controller writes no Progressing condition, and nobody waits for one.",
			hub:     deployment(4, 3, never, noProgressDeadline),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available)},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
	}
}

// failureRows are rollouts that fail on the target.
func failureRows() map[string]row {
	const exceeded = `deployment "web" exceeded its progress deadline`
	return map[string]row{
		"BadImage": {
			reason:  "A first rollout that cannot start fails for everyone who knows how to fail. Helm 3 waits until its timeout, on any cluster.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, stuck)},
			kubectl: failed(exceeded), kstatus: failed("Progress deadline exceeded"),
			helm3: waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"),
		},
		"BadImageNotYetGivenUp": {
			reason:  "Before the deadline a bad image looks like a slow one.",
			hub:     deployment(1, 3, never),
			target:  &observedObject{generation: 1, stamp: 1, status: counts(1, 3, 3, 0, 0, 3, unavailable, progressing)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 0 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 0/3"),
			helm3:   waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"),
		},
		"BadUpdate": {
			reason:  "The old Pods serve on, and the update has failed: the three ready Pods are none of the new ones.",
			hub:     deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 3, 3, 1, available, stuck)},
			kubectl: failed(exceeded), kstatus: failed("Progress deadline exceeded"),
			helm3: waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"),
		},
		"BadUpdateCorrected": {
			reason:  "The image was corrected on the hub a moment ago. The failure that still shows is that of the generation before, and fails nobody.",
			hub:     deployment(5, 3, counts(4, 4, 1, 3, 3, 1, available, stuck)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 3, 3, 1, available, stuck)},
			kubectl: waiting(unobserved),
			kstatus: waiting("Deployment generation is 5, but latest observed generation is 4"),
			helm3:   waiting("Deployment is not ready: default/web. observedGeneration (4) does not match spec generation (5)."),
		},
		"QuotaExceeded": {
			reason:  "The target may not make all Pods. It says so in a condition, which is reported, and fails at the deadline.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 2, 2, 2, 2, 1, unavailable, progressing, quotaExceeded)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus: waiting("Replicas: 2/3"),
			helm3:   waiting("Deployment is not ready: default/web. 2 out of 3 expected pods are ready"),
		},
		"CountsDisagree": {
			reason:  "More available than ready, and more ready than there are, is no status the hub stores. The lower number is believed.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 4, 5, 6, 0, available, complete)},
			odd:     true,
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"AvailableBeyondReady": {
			reason:  "Available Pods that are not ready are not shown as available.",
			hub:     deployment(4, 3, never),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 1, 3, 0, available, complete)},
			odd:     true,
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 of 3 updated replicas are available...`),
			kstatus: waiting("Available: 1/3"),
			helm3:   waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"),
		},
	}
}

// wishRows are changes of a Deployment other than that of the image.
func wishRows() map[string]row {
	return map[string]row{
		"PausedWhenDone": {
			reason:  "The user paused a Deployment that is rolled out. kstatus does not call a paused one current, and Helm 3 calls every paused one ready, on any cluster.",
			hub:     deployment(4, 3, never, paused),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, pausedOnward)},
			kubectl: done(rolledOut), kstatus: waiting("ReplicaSet not Available"), helm3: done(""),
		},
		"PausedHalfway": {
			reason:  "The user paused in the middle of a rollout, which therefore is not done.",
			hub:     deployment(4, 3, never, paused),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 1, 4, 4, 0, available, pausedOnward)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 1 out of 3 new replicas have been updated...`),
			kstatus: waiting("Updated: 1/3"),
			helm3:   done(""),
		},
		"ScaledToZero": {
			reason:  "No Pods are wanted and none are there, which is as rolled out as it gets.",
			hub:     deployment(4, 0, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 0, 0, 0, 0, 0, available, complete)},
			kubectl: done(rolledOut), kstatus: done("Deployment is available. Replicas: 0"), helm3: done(""),
		},
		"ScalingToZero": {
			reason:  "No Pods are wanted, and the target still has three: done only when it has seen the wish.",
			hub:     deployment(4, 0, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			kubectl: waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"NeverRanAtZero": {
			reason:  "No Pods are wanted, and no target has said so: nothing was observed, so nobody is done.",
			hub:     deployment(1, 0, never),
			kubectl: waiting(unobserved),
			kstatus: waiting("ReplicaSet not Available"),
			helm3:   waiting("Deployment is not ready: default/web. observedGeneration (0) does not match spec generation (1)."),
		},
		"ScaledUp": {
			reason:  "Two more Pods are wanted, and are on their way.",
			hub:     deployment(4, 5, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:  &observedObject{generation: 7, stamp: 4, status: counts(7, 5, 5, 3, 3, 2, unavailable, complete)},
			kubectl: waiting(`Waiting for deployment "web" rollout to finish: 3 of 5 updated replicas are available...`),
			kstatus: waiting("Available: 3/5"),
			helm3:   waiting("Deployment is not ready: default/web. 3 out of 4 expected pods are ready"),
		},
		"TerminatingCounted": {
			reason: "A newer target counts Pods that terminate. They are not old ones to wait for, and the count is reported.",
			hub:    deployment(4, 3, never),
			target: &observedObject{generation: 7, stamp: 4, status: func() appsv1.DeploymentStatus {
				status := counts(7, 3, 3, 3, 3, 0, available, complete)
				status.TerminatingReplicas = ptr.To(int32(2))
				return status
			}()},
			kubectl: done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
	}
}

// absenceRows have no status on the target.
func absenceRows() map[string]row {
	const nothing = "Deployment is not ready: default/web. observedGeneration (0) does not match spec generation (1)."
	return map[string]row{
		"NotAppliedYet": {
			reason:  "The Deployment was accepted a moment ago.",
			hub:     deployment(1, 3, never),
			kubectl: waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing),
		},
		"NoTargetMatches": {
			reason:     "There is nowhere to run. That may change without an edit, so everyone waits, and a condition says for what.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{homeless},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing),
		},
		"RefusedAtFirst": {
			reason:     "The target refused the Deployment, and may accept it later.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{refused},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing),
		},
		"UpdateRefused": {
			reason:     "The target runs the generation before and refused this one.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{refused},
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"Unreachable": {
			reason:     "The target went away after the rollout was done. The last counts are kept, with a condition that says since when they are the last.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
		"UnreachableHalfway": {
			reason:     "The target went away in the middle of a rollout, which nobody may call done.",
			hub:        deployment(4, 3, counts(4, 4, 2, 3, 3, 1, available, progressing)),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 4, 2, 3, 3, 1, available, progressing)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(`Waiting for deployment "web" rollout to finish: 2 out of 3 new replicas have been updated...`),
			kstatus:    waiting("Updated: 2/3"),
			helm3:      waiting("Deployment is not ready: default/web. 1 out of 3 expected pods are ready"),
		},
		"EditedWhileUnreachable": {
			reason:     "An edit that could not be sent is not done, whatever the last counts say.",
			hub:        deployment(4, 3, counts(3, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 7, stamp: 3, status: counts(7, 3, 3, 3, 3, 0, available, complete)},
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(unobserved), kstatus: waiting(outdated4), helm3: waiting(outdated4h),
		},
		"NeverReached": {
			reason:     "The target has not answered since the Deployment was applied.",
			hub:        deployment(1, 3, never),
			conditions: []metav1.Condition{unreachable},
			kubectl:    waiting(unobserved), kstatus: waiting("Replicas: 0/3"), helm3: waiting(nothing),
		},
		"DeletedOnTheTarget": {
			reason:     "Somebody deleted the target's copy; the one that replaces it has no status yet.",
			hub:        deployment(4, 3, counts(4, 3, 3, 3, 3, 0, available, complete)),
			target:     &observedObject{generation: 1, stamp: 4, status: never},
			remembered: 4,
			kubectl:    waiting(`Waiting for deployment "web" rollout to finish: 0 out of 3 new replicas have been updated...`),
			kstatus:    waiting("Replicas: 0/3"),
			helm3:      waiting("Deployment is not ready: default/web. 0 out of 3 expected pods are ready"),
		},
		"ForeignConditions": {
			reason:     "A controller on the target writes a condition of the name of one of Portico's. There is one of each name on the hub.",
			hub:        deployment(4, 3, never),
			target:     &observedObject{generation: 7, stamp: 4, status: counts(7, 3, 3, 3, 3, 0, available, complete, condition("Synced", "True", "ReconcileSuccess", ""))},
			conditions: []metav1.Condition{refused},
			kubectl:    done(rolledOut), kstatus: done(ready3), helm3: done(""),
		},
	}
}
