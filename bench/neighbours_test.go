package bench

import (
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// neighbourEnv makes this program one that computes until its input ends.
const neighbourEnv = "ORDERWHEEL_BENCH_NEIGHBOUR"

func TestMain(m *testing.M) {
	if os.Getenv(neighbourEnv) == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for data := make([]byte, 1024); ; {
		sum := sha256.Sum256(data)
		copy(data, sum[:])
	}
}

// neighbours starts a process for each processor, which computes until the benchmark
// ends, or this process does.
func neighbours(b *testing.B) {
	for range runtime.NumCPU() {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), neighbourEnv+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		b.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
	}
}
