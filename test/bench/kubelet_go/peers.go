// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
)

const (
	driverName   = "gpu.example.com"
	resourceName = "example.com/gpu"
)

// driver answers as QuickDriver of ../quick_driver.cc does.
type driver struct {
	drapb.UnimplementedDRAPluginServer
	socket string
	server *grpc.Server
}

func startDriver(socket string) *driver {
	d := &driver{socket: socket, server: grpc.NewServer()}
	drapb.RegisterDRAPluginServer(d.server, d)
	serve(d.server, socket)
	return d
}

func (d *driver) stop() { d.server.Stop() }

func (d *driver) NodePrepareResources(_ context.Context, request *drapb.NodePrepareResourcesRequest) (*drapb.NodePrepareResourcesResponse, error) {
	response := &drapb.NodePrepareResourcesResponse{Claims: map[string]*drapb.NodePrepareResourceResponse{}}
	for _, claim := range request.Claims {
		response.Claims[claim.Uid] = &drapb.NodePrepareResourceResponse{Devices: []*drapb.Device{{
			PoolName: "pool-0", DeviceName: "dev-" + claim.Name, CdiDeviceIds: []string{"example.com/x=" + claim.Uid}}}}
	}
	return response, nil
}

func (d *driver) NodeUnprepareResources(_ context.Context, request *drapb.NodeUnprepareResourcesRequest) (*drapb.NodeUnprepareResourcesResponse, error) {
	response := &drapb.NodeUnprepareResourcesResponse{Claims: map[string]*drapb.NodeUnprepareResourceResponse{}}
	for _, claim := range request.Claims {
		response.Claims[claim.Uid] = &drapb.NodeUnprepareResourceResponse{}
	}
	return response, nil
}

// plugin answers as FakeDevicePlugin of devmgr/testing.h does.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	folder  string
	devices []*pluginapi.Device
	server  *grpc.Server
}

// startPlugin makes one of so many devices and registers it.
func startPlugin(folder, kubelet string, devices int) *plugin {
	p := &plugin{folder: folder, server: grpc.NewServer()}
	for i := range devices {
		p.devices = append(p.devices, &pluginapi.Device{ID: fmt.Sprintf("gpu-%d", i), Health: pluginapi.Healthy})
	}
	pluginapi.RegisterDevicePluginServer(p.server, p)
	serve(p.server, filepath.Join(folder, "gpu.sock"))
	connection := dial(kubelet)
	defer connection.Close()
	mustGet(pluginapi.NewRegistrationClient(connection).Register(context.Background(), &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: "gpu.sock", ResourceName: resourceName}))
	return p
}

func (p *plugin) stop() { p.server.Stop() }

func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{}}
		for _, id := range container.DevicesIds {
			answer.Envs["EXAMPLE_COM_GPU"] += id
			answer.Devices = append(answer.Devices,
				&pluginapi.DeviceSpec{ContainerPath: "/dev/" + id, HostPath: "/dev/null", Permissions: "rw"})
			answer.Mounts = append(answer.Mounts,
				&pluginapi.Mount{ContainerPath: "/run/devices/" + id, HostPath: filepath.Join(p.folder, id), ReadOnly: true})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func serve(server *grpc.Server, socket string) {
	listener := mustGet(net.Listen("unix", socket))
	go func() { must(server.Serve(listener)) }()
}

func dial(socket string) *grpc.ClientConn {
	return mustGet(grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())))
}

// bareThings is what there is on both sides without a manager: a call to the
// driver, and an append to the disk of the size of ../support.cc.
func bareThings(r report, below string) {
	d := startDriver(filepath.Join(below, "bare.sock"))
	defer d.stop()
	connection := dial(d.socket)
	defer connection.Close()
	client := drapb.NewDRAPluginClient(connection)
	file := mustGet(os.Create(filepath.Join(below, "raw.log")))
	defer file.Close()
	record := make([]byte, 1500)
	var calls, appends []time.Duration
	for i := range r.count(lives, 20) {
		claim := &drapb.Claim{Namespace: "default", Name: "it", Uid: fmt.Sprint("uid-", i)}
		calls = append(calls, timeOf(func() {
			mustGet(client.NodePrepareResources(context.Background(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{claim}}))
		}))
		appends = append(appends, timeOf(func() {
			mustGet(file.Write(record))
			must(syscall.Fdatasync(int(file.Fd())))
		}))
	}
	r.add("a bare call to the driver", "us", calls)
	r.add("a bare append + fdatasync", "us", appends)
}
