// Package logbuffer has a log that many goroutines write to and a test reads. Only
// tests import it.
package logbuffer

import (
	"bytes"
	"sync"
)

// Buffer keeps what is written to it. The zero Buffer is ready, and safe for concurrent
// use.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
