package lib.workloads_test

import data.lib.workloads

deployment := {"kind": "Deployment", "spec": {"template": {"spec": {
	"containers": [{"name": "app", "image": "nginx"}],
	"initContainers": [{"name": "prepare", "image": "registry.example.org/tools/prepare:v1"}],
}}}}

test_containers_with_fields if {
	{found.field | some found in workloads.containers(deployment)} == {
		"spec.template.spec.containers[0]",
		"spec.template.spec.initContainers[0]",
	}
}

test_containers_of_a_pod if {
	pod := {"kind": "Pod", "spec": {"containers": [{"name": "app", "image": "nginx"}]}}
	{found.field | some found in workloads.containers(pod)} == {"spec.containers[0]"}
}

test_containers_of_a_cron_job if {
	cron_job := {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "nginx"}]}}}}}}
	{found.field | some found in workloads.containers(cron_job)} == {"spec.jobTemplate.spec.template.spec.containers[0]"}
}

test_a_service_has_none if {
	workloads.containers({"kind": "Service", "spec": {"ports": []}}) == set()
}

test_registry[image] if {
	some image, want in {
		"nginx": "docker.io",
		"library/nginx:1.27": "docker.io",
		"localhost/app": "localhost",
		"registry.example.org/app": "registry.example.org",
		"registry:5000/app@sha256:0000": "registry:5000",
	}
	workloads.registry(image) == want
}
