package persist

import "fmt"

func (o CancelOutcome) String() string {
	return name(int(o), "not found", "cancelled", "running")
}

func (s ClaimState) String() string {
	return name(int(s), "gone", "claimed", "not yet", "busy", "buried")
}

func (s SettleState) String() string {
	return name(int(s), "refused", "settled", "scheduled")
}

func (t Turn) String() string {
	return name(int(t), "refused", "taken", "kept")
}

func (s Status) String() string {
	return name(int(s), "gone", "due", "running", "dead")
}

func name(code int, names ...string) string {
	if code < 0 || code >= len(names) {
		return fmt.Sprintf("unknown (%d)", code)
	}
	return names[code]
}
