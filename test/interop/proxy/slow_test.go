// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// A client that takes its time pings to find out how wide the way is. Servers
// hang up on clients whose pings come while nothing is sent to them.
func TestClientsThatReadSlowly(t *testing.T) {
	folder := t.TempDir()
	startPeer(t, filepath.Join(folder, "cri"))
	startProgram(t, "proxy", filepath.Join(folder, "shim"), filepath.Join(folder, "cri"))
	for _, way := range []string{"cri", "shim"} {
		t.Run(way, func(t *testing.T) {
			connection := dial(t, filepath.Join(folder, way))
			for round := 0; round < 3; round++ {
				stream, err := connection.NewStream(background(t), &grpc.StreamDesc{ServerStreams: true}, "/interop.Peer/Emit")
				if err != nil {
					t.Fatal(err)
				}
				request := []byte("400 20000")
				if err := stream.SendMsg(&request); err != nil {
					t.Fatal(err)
				}
				if err := stream.CloseSend(); err != nil {
					t.Fatal(err)
				}
				for i := 0; i < 400; i++ {
					var message []byte
					if err := stream.RecvMsg(&message); err != nil {
						t.Fatalf("message %d: %v", i, err)
					}
					if !bytes.Equal(message, pattern(i, 20000)) {
						t.Fatalf("message %d is another one", i)
					}
					time.Sleep(2 * time.Millisecond) // Not for luck: this is the slow client.
				}
				var message []byte
				if err := stream.RecvMsg(&message); err != io.EOF {
					t.Fatal(err)
				}
			}
		})
	}
}
