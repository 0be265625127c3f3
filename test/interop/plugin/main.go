// SPDX-License-Identifier: Apache-2.0

// A device plugin on the official stubs and plain grpc-go, as most vendors
// build theirs. Has devices card-0 and card-1, offers preferred allocation and
// requires pre-start. Prints one line per call.
//
//	plugin --resource NAME --root DIR [--directory]
//
// It registers through the registry socket, and anew when its own socket was
// deleted or there is another registry socket. With --directory it waits in
// the registration directory instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer
	resource string
	done     chan struct{}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	fmt.Println("options")
	return options(), nil
}

func options() *deviceplugin.DevicePluginOptions {
	return &deviceplugin.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}
}

func (p *plugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	fmt.Println("list")
	devices := []*deviceplugin.Device{
		{ID: "card-0", Health: deviceplugin.Healthy},
		{ID: "card-1", Health: deviceplugin.Healthy, Topology: &deviceplugin.TopologyInfo{Nodes: []*deviceplugin.NUMANode{{ID: 0}}}},
	}
	if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
	case <-p.done:
	}
	return nil
}

func (p *plugin) GetPreferredAllocation(_ context.Context, request *deviceplugin.PreferredAllocationRequest) (*deviceplugin.PreferredAllocationResponse, error) {
	response := &deviceplugin.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		ids := container.AvailableDeviceIDs
		from := max(0, len(ids)-int(container.AllocationSize))
		fmt.Println("preferred", container.AllocationSize)
		response.ContainerResponses = append(response.ContainerResponses,
			&deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: ids[from:]})
	}
	return response, nil
}

func (p *plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	response := &deviceplugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		ids := strings.Join(container.DevicesIds, ",")
		fmt.Println("allocate", ids)
		answer := &deviceplugin.ContainerAllocateResponse{
			Envs:        map[string]string{"CARDS": ids},
			Annotations: map[string]string{"example.com/cards": ids},
		}
		for _, id := range container.DevicesIds {
			if !strings.HasPrefix(id, "card-") {
				return nil, fmt.Errorf("invalid allocation request: unknown device %s", id)
			}
			answer.Devices = append(answer.Devices,
				&deviceplugin.DeviceSpec{ContainerPath: "/dev/" + id, HostPath: "/dev/null", Permissions: "rw"})
			answer.Mounts = append(answer.Mounts,
				&deviceplugin.Mount{ContainerPath: "/opt/" + id, HostPath: "/tmp", ReadOnly: true})
			answer.CdiDevices = append(answer.CdiDevices, &deviceplugin.CDIDevice{Name: p.resource + "=" + id})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func (p *plugin) PreStartContainer(_ context.Context, request *deviceplugin.PreStartContainerRequest) (*deviceplugin.PreStartContainerResponse, error) {
	fmt.Println("pre-start", strings.Join(request.DevicesIds, ","))
	return &deviceplugin.PreStartContainerResponse{}, nil
}

func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	fmt.Println("info")
	return &registration.PluginInfo{
		Type: registration.DevicePlugin, Name: p.resource, SupportedVersions: []string{deviceplugin.Version},
	}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("notified", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (p *plugin) serve(socket string, directory bool) *grpc.Server {
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	p.done = make(chan struct{})
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	if directory {
		registration.RegisterRegistrationServer(server, p)
	}
	go func() { _ = server.Serve(listener) }()
	return server
}

func (p *plugin) register(registry, endpoint string) error {
	connection, err := grpc.NewClient("unix://"+registry, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: endpoint, ResourceName: p.resource, Options: options(),
	})
	return err
}

// identity of a file; nil when there is none.
func identity(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// byRegistry serves and registers, over and over, until the end.
func (p *plugin) byRegistry(ctx context.Context, directory string) {
	registry := filepath.Join(directory, "kubelet.sock")
	endpoint := "interop.sock"
	socket := filepath.Join(directory, endpoint)
	for ctx.Err() == nil {
		server := p.serve(socket, false)
		seen := identity(registry)
		// One that appears in between would be taken for another one.
		if seen != nil && p.register(registry, endpoint) == nil {
			fmt.Println("registered")
		} else {
			seen = nil
		}
		// Looked at, not watched: enough for a test, and nothing to depend on.
		for ctx.Err() == nil && identity(socket) != nil && same(seen, identity(registry)) {
			time.Sleep(20 * time.Millisecond)
		}
		close(p.done)
		server.Stop()
		if seen == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func main() {
	resource := flag.String("resource", "", "extended resource name")
	root := flag.String("root", "", "as devmgrd --root")
	directory := flag.Bool("directory", false, "register in the registration directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	folder := filepath.Join(*root, "device-plugins")
	if *directory {
		folder = filepath.Join(*root, "plugins_registry")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		log.Fatal(err)
	}
	p := &plugin{resource: *resource}
	if !*directory {
		p.byRegistry(ctx, folder)
		return
	}
	server := p.serve(filepath.Join(folder, "interop.sock"), true)
	fmt.Println("serving")
	<-ctx.Done()
	close(p.done)
	server.Stop()
}
