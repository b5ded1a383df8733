package scheduling.replicas_test

import data.scheduling.replicas

asked(count) := {
	"object": {"spec": {"replicas": count}},
	"namespace": {"metadata": {"labels": {"env": "prod"}}},
	"targets": [],
	"request": {"user": {"username": "ada"}},
	"parameters": {"most": 10},
}

test_ten_are_fine if count(replicas.deny) == 0 with input as asked(10)

test_eleven_are_not if count(replicas.deny) == 1 with input as asked(11)

test_many_are_told if {
	count(replicas.warn) == 1 with input as asked(6)
}
