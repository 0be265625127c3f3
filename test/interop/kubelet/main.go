// SPDX-License-Identifier: Apache-2.0

// Stands in for the kubelet towards device plugins, with the official stubs.
// Serves the registry socket and takes what registers there through all calls:
// options, list, preferred allocation, allocate, pre-start. Then it comes back
// as a restarted kubelet, with a new registry socket and the plugins' sockets
// deleted, and waits for the plugin once more. Prints one line per answer.
//
//	kubelet --root DIR [--registration SOCKET]
//
// With --registration it takes a plugin of the registration directory through
// the handshake and the same calls instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registry hands on what registers. A plugin that listened before the start has
// lost its socket to it: as a kubelet that cannot dial it refuses.
type registry struct {
	deviceplugin.UnimplementedRegistrationServer
	directory  string
	registered chan *deviceplugin.RegisterRequest
}

func (r registry) Register(_ context.Context, request *deviceplugin.RegisterRequest) (*deviceplugin.Empty, error) {
	if _, err := os.Stat(filepath.Join(r.directory, request.Endpoint)); err != nil {
		return nil, err
	}
	r.registered <- request
	return &deviceplugin.Empty{}, nil
}

func dial(socket string) *grpc.ClientConn {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func healthOf(devices []*deviceplugin.Device) string {
	var texts []string
	for _, device := range devices {
		text := device.ID + "=" + device.Health
		for _, node := range device.GetTopology().GetNodes() {
			text += fmt.Sprintf("@%d", node.ID)
		}
		texts = append(texts, text)
	}
	sort.Strings(texts)
	return strings.Join(texts, ",")
}

// call takes a plugin through all calls and returns its open stream.
func call(ctx context.Context, socket string) grpc.ServerStreamingClient[deviceplugin.ListAndWatchResponse] {
	plugin := deviceplugin.NewDevicePluginClient(dial(socket))
	options, err := plugin.GetDevicePluginOptions(ctx, &deviceplugin.Empty{})
	if err != nil {
		log.Fatal("options: ", err)
	}
	fmt.Println("options", options.PreStartRequired, options.GetPreferredAllocationAvailable)

	stream, err := plugin.ListAndWatch(ctx, &deviceplugin.Empty{})
	if err != nil {
		log.Fatal("list: ", err)
	}
	list, err := stream.Recv()
	if err != nil {
		log.Fatal("list: ", err)
	}
	fmt.Println("list", healthOf(list.Devices))

	var ids []string
	for _, device := range list.Devices {
		ids = append(ids, device.ID)
	}
	preferred, err := plugin.GetPreferredAllocation(ctx, &deviceplugin.PreferredAllocationRequest{
		ContainerRequests: []*deviceplugin.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: ids, AllocationSize: 1}},
	})
	if err != nil {
		log.Fatal("preferred: ", err)
	}
	chosen := preferred.ContainerResponses[0].DeviceIDs
	fmt.Println("preferred", strings.Join(chosen, ","))

	allocated, err := plugin.Allocate(ctx, &deviceplugin.AllocateRequest{
		ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: chosen}},
	})
	if err != nil {
		log.Fatal("allocate: ", err)
	}
	for _, container := range allocated.ContainerResponses {
		fmt.Println("env", container.Envs)
		for _, device := range container.Devices {
			fmt.Println("device", device.ContainerPath, device.HostPath, device.Permissions)
		}
		for _, mount := range container.Mounts {
			fmt.Println("mount", mount.ContainerPath, mount.ReadOnly)
		}
		for _, device := range container.CdiDevices {
			fmt.Println("cdi", device.Name)
		}
	}
	_, err = plugin.Allocate(ctx, &deviceplugin.AllocateRequest{
		ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: []string{"nobodys"}}},
	})
	fmt.Println("unknown device refused", err != nil)
	if _, err := plugin.PreStartContainer(ctx, &deviceplugin.PreStartContainerRequest{DevicesIds: chosen}); err != nil {
		log.Fatal("pre-start: ", err)
	}
	fmt.Println("pre-start done")
	return stream
}

// serve listens as a kubelet that starts: stale sockets go first.
func serve(directory string, registered chan *deviceplugin.RegisterRequest) *grpc.Server {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		log.Fatal(err)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		log.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket != 0 {
			_ = os.Remove(filepath.Join(directory, entry.Name()))
		}
	}
	listener, err := net.Listen("unix", filepath.Join(directory, "kubelet.sock"))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	deviceplugin.RegisterRegistrationServer(server, registry{directory: directory, registered: registered})
	go func() { _ = server.Serve(listener) }()
	return server
}

func next(ctx context.Context, registered chan *deviceplugin.RegisterRequest) *deviceplugin.RegisterRequest {
	select {
	case request := <-registered:
		return request
	case <-ctx.Done():
		log.Fatal("nobody registers")
		return nil
	}
}

func byRegistry(ctx context.Context, directory string) {
	registered := make(chan *deviceplugin.RegisterRequest, 64)
	server := serve(directory, registered)
	request := next(ctx, registered)
	fmt.Println("registered", request.Version, request.Endpoint, request.ResourceName,
		request.Options.GetPreStartRequired(), request.Options.GetGetPreferredAllocationAvailable())
	stream := call(ctx, filepath.Join(directory, request.Endpoint))

	server.Stop()
	again := make(chan *deviceplugin.RegisterRequest, 64)
	server = serve(directory, again)
	defer server.Stop()
	if _, err := stream.Recv(); err != nil {
		fmt.Println("stream ended")
	}
	request = next(ctx, again)
	fmt.Println("registered again", request.Version, request.Endpoint, request.ResourceName)
	call(ctx, filepath.Join(directory, request.Endpoint))
}

func byDirectory(ctx context.Context, socket string) {
	registrar := registration.NewRegistrationClient(dial(socket))
	// The plugin may be about to make its socket.
	info, err := registrar.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		log.Fatal("info: ", err)
	}
	fmt.Println("info", info.Type, info.Name, info.Endpoint, strings.Join(info.SupportedVersions, ","))
	endpoint := info.Endpoint
	if endpoint == "" {
		endpoint = socket
	}
	call(ctx, endpoint)
	if _, err := registrar.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		log.Fatal("notify: ", err)
	}
	fmt.Println("notified")
}

func main() {
	root := flag.String("root", "", "as devmgrd --root")
	socket := flag.String("registration", "", "a socket in the registration directory")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	if *socket != "" {
		byDirectory(ctx, *socket)
	} else {
		byRegistry(ctx, filepath.Join(*root, "device-plugins"))
	}
}
