package persisttest

// What those outside the executor do: users, and operators.
var userOps = []operation{
	{name: "schedule makes due afresh, or sets the successor", do: scheduling(5000), rows: []row{
		{"gone", "", "due 5000"},
		{"done", "", "due 5000"},
		{"due", "", "due 5000"},
		{"later", "", "due 5000"},
		{"retried", "", "due 5000"},
		{"retried later", "", "due 5000"},
		{"lost", "", "due 5000"},
		{"lost uncounted", "", "due 5000"},
		{"reaped", "", "due 5000"},
		{"running", "", "running until in an hour, attempt 1, first 1000, again 5000"},
		{"running, cancelled", "", "running until in an hour, attempt 1, first 1000, again 5000"},
		{"running, successor", "", "running until in an hour, attempt 1, first 1000, again 5000"},
		{"running, successor cancelled", "", "running until in an hour, attempt 1, first 1000, again 5000"},
		{"running, cancelled, successor", "", "running until in an hour, attempt 1, first 1000, again 5000"},
		{"running, lost", "", "running until in an hour, attempt 2, first 1000, lost, again 5000"},
		{"running, lost, cancelled", "", "running until in an hour, attempt 2, first 1000, lost, again 5000"},
		{"running, lost, successor", "", "running until in an hour, attempt 2, first 1000, lost, again 5000"},
		{"over", "", "running until now, attempt 1, first 1000, again 5000"},
		{"over, cancelled", "", "running until now, attempt 1, first 1000, again 5000"},
		{"over, successor", "", "running until now, attempt 1, first 1000, again 5000"},
		{"dead", "", "due 5000"},
		{"dead of its attempts", "", "due 5000"},
	}},

	// What is dead is not found, and stays dead.
	{name: "cancel removes what is due, and marks what runs", do: cancelling, otherwise: "not found", rows: []row{
		{"due", "cancelled", "gone"},
		{"later", "cancelled", "gone"},
		{"retried", "cancelled", "gone"},
		{"retried later", "cancelled", "gone"},
		{"lost", "running", "gone"},
		{"lost uncounted", "running", "gone"},
		{"reaped", "running", "gone"},
		{"running", "running", "running until in an hour, attempt 1, first 1000, cancelled"},
		{"running, cancelled", "running", ""},
		{"running, successor", "running", "running until in an hour, attempt 1, first 1000, cancelled"},
		{"running, successor cancelled", "running", ""},
		{"running, cancelled, successor", "running", "running until in an hour, attempt 1, first 1000, cancelled"},
		{"running, lost", "running", "running until in an hour, attempt 2, first 1000, cancelled, lost"},
		{"running, lost, cancelled", "running", ""},
		{"running, lost, successor", "running", "running until in an hour, attempt 2, first 1000, cancelled, lost"},
		{"over", "running", "running until now, attempt 1, first 1000, cancelled"},
		{"over, cancelled", "running", ""},
		{"over, successor", "running", "running until now, attempt 1, first 1000, cancelled"},
	}},

	{name: "claim takes what is due", do: claiming("new", 0), otherwise: "busy", rows: []row{
		{"gone", "gone", ""},
		{"done", "gone", ""},
		{"due", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000"},
		{"later", "not yet, due 4000000000000", ""},
		{"retried", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000"},
		{"retried later", "not yet, due 4000000000000", ""},
		{"lost", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost"},
		{"lost uncounted", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, lost"},
		{"reaped", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost"},
		{"dead", "gone", ""},
		{"dead of its attempts", "gone", ""},
	}},

	// The lease begins anew, and may end sooner than before: only a renewal never
	// shortens it.
	{name: "claim under the same token is the same claim", do: claiming(token, 0), rows: []row{
		{"gone", "gone", ""},
		{"done", "gone", ""},
		{"due", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000"},
		{"later", "not yet, due 4000000000000", ""},
		{"retried", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000"},
		{"retried later", "not yet, due 4000000000000", ""},
		{"lost", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost"},
		{"lost uncounted", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, lost"},
		{"reaped", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost"},
		{"running", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000"},
		{"running, cancelled", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, cancelled"},
		{"running, successor", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, again 4000000000000"},
		{"running, successor cancelled", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, cancelled"},
		{"running, cancelled, successor", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, again 4000000000000"},
		{"running, lost", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost"},
		{"running, lost, cancelled", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, cancelled, lost"},
		{"running, lost, successor", "claimed, attempt 2, first 1000", "running until in a minute, attempt 2, first 1000, lost, again 4000000000000"},
		{"over", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000"},
		{"over, cancelled", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, cancelled"},
		{"over, successor", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, again 4000000000000"},
		{"dead", "gone", ""},
		{"dead of its attempts", "gone", ""},
	}},

	// What is not due yet is not buried either.
	{name: "claim buries what had all its attempts", do: claiming("new", 1), otherwise: "busy", rows: []row{
		{"gone", "gone", ""},
		{"done", "gone", ""},
		{"due", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000"},
		{"later", "not yet, due 4000000000000", ""},
		{"retried", "buried", "dead since now, attempt 1, first 1000, a reason of the store"},
		{"retried later", "not yet, due 4000000000000", ""},
		{"lost", "buried", "dead since now, attempt 1, first 1000, a reason of the store"},
		{"lost uncounted", "claimed, attempt 1, first 1000", "running until in a minute, attempt 1, first 1000, lost"},
		{"reaped", "buried", "dead since now, attempt 1, first 1000, a reason of the store"},
		{"dead", "gone", ""},
		{"dead of its attempts", "gone", ""},
	}},
}

// What operators do with the dead, and recovery with what nobody settles.
var deadOps = []operation{
	{name: "reap takes back what runs with its lease over", do: reaping, rows: []row{
		{"over", "over now", "due now, attempt 1, first 1000, lost"},
		{"over, cancelled", "", "gone"},
		{"over, successor", "over, successor 4000000000000", "due 4000000000000"},
	}},
	{name: "requeue makes the dead due now, afresh", do: requeueing, otherwise: "refused", rows: []row{
		{"dead", "scheduled now", "due now"},
		{"dead of its attempts", "scheduled now", "due now"},
	}},
	{name: "ensure makes due what stands nowhere, and nothing else", do: ensuring(5000), otherwise: "no", rows: []row{
		{"gone", "yes", "due 5000"},
		{"done", "yes", "due 5000"},
	}},
	{name: "discard forgets the dead", do: discarding, otherwise: "no", rows: []row{
		{"dead", "yes", "gone"},
		{"dead of its attempts", "yes", "gone"},
	}},
}
