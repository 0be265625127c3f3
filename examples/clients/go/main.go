// SPDX-License-Identifier: Apache-2.0
// client SOCKET MANIFEST CONTAINER wants a pod of devmgrd, shows what its container gets, and
// wants it no longer. How its messages are made of the installed schemas: docs/control.md.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	control "devmgr.example.com/client/devmgr/control/v1"
	inspection "devmgr.example.com/client/devmgr/inspection/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

const service = "/devmgr.control.v1.Controller/"

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A client that loses the connection goes on with the token of the last message.
func waitUntilReady(ctx context.Context, daemon *grpc.ClientConn, uid string) {
	stream, err := daemon.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, service+"WatchPods")
	must(err)
	must(stream.SendMsg(&control.WatchPodsRequest{}))
	must(stream.CloseSend())
	change := new(control.WatchPodsResponse)
	for change.GetPod().GetUid() != uid || change.Pod.State != inspection.PodState_POD_STATE_READY {
		must(stream.RecvMsg(change))
	}
}

func main() {
	manifest, err := os.ReadFile(os.Args[2])
	must(err)
	daemon, err := grpc.NewClient("unix:"+os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	call := func(method string, request, answer proto.Message) {
		must(daemon.Invoke(ctx, service+method, request, answer))
	}
	wanted, devices := new(control.WantPodResponse), new(inspection.ContainerDevices)
	call("WantPod", &control.WantPodRequest{Manifest: string(manifest)}, wanted)
	waitUntilReady(ctx, daemon, wanted.Uid)
	call("ContainerDevices", &control.ContainerDevicesRequest{Uid: wanted.Uid, Container: os.Args[3]}, devices)
	start := &control.BeforeContainerStartRequest{Uid: wanted.Uid, Container: os.Args[3]}
	call("BeforeContainerStart", start, new(control.BeforeContainerStartResponse))
	for _, device := range devices.CdiDevices {
		fmt.Println(device.Name)
	}
	call("UnwantPod", &control.UnwantPodRequest{Uid: wanted.Uid}, new(control.UnwantPodResponse))
}
