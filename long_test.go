package orderwheel_test

import "os"

// long is set by make test-long: races then run at their full size.
func long() bool { return os.Getenv("ORDERWHEEL_LONG") != "" }
