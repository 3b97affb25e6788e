// Package peers measures other libraries for the same job under the loads of package
// bench. It is a module of its own, so that nobody who uses orderwheel downloads them.
//
//	go test -C bench/peers -run '^$' -bench . -benchtime 1x
//
// What is measured:
//
//   - asynq (github.com/hibiken/asynq): a task queue on Redis. A task that is to be
//     processed later waits in a ZSet, whose scores are whole seconds: it may start up
//     to a second early. A forwarder moves what is due into a list, every 5 s unless
//     told otherwise, and workers that found that list empty look again after a second.
//
// Its programs are children of bench/schemes: schemes runs the ways to close orders that need
// RabbitMQ's client or asynq, plot draws what was measured.
package peers
