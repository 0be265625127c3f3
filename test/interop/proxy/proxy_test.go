// SPDX-License-Identifier: Apache-2.0

// Package proxy holds grpc-go on both ends of the CRI proxy: what a client is
// told through it is what it is told without it.
//
//	DEVMGR_CRI_PEER   the program cri_peer
package proxy

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const patience = 2 * time.Minute // For what takes seconds: machines are busy.

// startProgram runs cri_peer until the test ends.
func startProgram(t *testing.T, arguments ...string) {
	t.Helper()
	program := os.Getenv("DEVMGR_CRI_PEER")
	if program == "" {
		t.Skip("DEVMGR_CRI_PEER is not set")
	}
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%v: %v", arguments, err)
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%v: %q, %v", arguments, line, err)
	}
}

// dial connects as the kubelet does: with no options but sizes.
func dial(t *testing.T, socket string, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}),
			grpc.MaxCallRecvMsgSize(anySize), grpc.MaxCallSendMsgSize(anySize)),
	}, more...)
	connection, err := grpc.NewClient("unix://"+socket, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
