// SPDX-License-Identifier: Apache-2.0

// Talks to a registered DRA driver as the kubelet does, with the official
// stubs: handshake, prepare and unprepare in both API versions. Prints what it
// was told, one line per answer.
//
//	client --socket DRIVER-reg.sock --namespace NS --claim NAME --uid UID
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func dial(socket string) *grpc.ClientConn {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func main() {
	socket := flag.String("socket", "", "registration socket")
	namespace := flag.String("namespace", "default", "namespace of the claim")
	name := flag.String("claim", "", "name of the claim")
	uid := flag.String("uid", "", "UID of the claim")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	registrar := registration.NewRegistrationClient(dial(*socket))
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("info", info.Type, info.Name, strings.Join(info.SupportedVersions, ","))
	if _, err := registrar.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		log.Fatal(err)
	}

	service := dial(info.Endpoint)
	v1 := drav1.NewDRAPluginClient(service)
	v1beta1 := drav1beta1.NewDRAPluginClient(service)

	prepared, err := v1.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{
		Claims: []*drav1.Claim{{Namespace: *namespace, Name: *name, UID: *uid}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, device := range prepared.Claims[*uid].GetDevices() {
		fmt.Println("v1 prepared", device.RequestNames, device.PoolName, device.DeviceName, device.CDIDeviceIDs)
	}
	fmt.Printf("v1 error %q\n", prepared.Claims[*uid].GetError())

	again, err := v1beta1.NodePrepareResources(ctx, &drav1beta1.NodePrepareResourcesRequest{
		Claims: []*drav1beta1.Claim{{Namespace: *namespace, Name: *name, UID: *uid}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, device := range again.Claims[*uid].GetDevices() {
		fmt.Println("v1beta1 prepared", device.RequestNames, device.PoolName, device.DeviceName, device.CDIDeviceIDs)
	}
	unprepared, err := v1beta1.NodeUnprepareResources(ctx, &drav1beta1.NodeUnprepareResourcesRequest{
		Claims: []*drav1beta1.Claim{{Namespace: *namespace, Name: *name, UID: *uid}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("v1beta1 unprepared %q\n", unprepared.Claims[*uid].GetError())
	if _, err := v1.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{
		Claims: []*drav1.Claim{{Namespace: *namespace, Name: *name, UID: *uid}},
	}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("v1 unprepared once more")
}
