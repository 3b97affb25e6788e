package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// plot draws the report to a file. The drawing is done in bench/peers.
func plot(ctx context.Context, r Report, to string) error {
	dir, err := os.MkdirTemp("", "orderwheel-plot-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "plot")
	if err := buildPeer(ctx, "plot", program); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, to)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("plot: %w\n%s", err, out)
	}
	return nil
}
