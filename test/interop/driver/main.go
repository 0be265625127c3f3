// SPDX-License-Identifier: Apache-2.0

// A DRA driver on the official helper (k8s.io/dynamic-resource-allocation's
// kubeletplugin), as vendors build theirs. The API server is client-go's fake
// one, with the claims of a manifest, or a real one, to which it publishes
// slices. Prints one line per event.
//
//	driver --name DRIVER --root DIR --manifest FILE [--instance UID]
//	       [--api v1,v1beta1] [--health] [--orders DIR] [--cdi DIR]
//	driver --name DRIVER --root DIR --server URL --credentials DIR
//	       [--account NAME] [--devices N] ...
//	driver --name DRIVER --root DIR --kubeconfig FILE [--devices N] ...
//
// While DIR holds a file `prepare-hang`, `prepare-fail` (the whole call, with
// what the file says) or `prepare-fail-claim` (each claim of it), calls do
// that; the same with `unprepare-`. The file `health`, if there is one, says
// how its devices are: `Healthy` or `Unhealthy`.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
)

// glance is how often orders are looked at.
const glance = 10 * time.Millisecond

// orders are files by which a test tells the driver what to do.
type orders string

func (o orders) read(name string) (string, bool) {
	if o == "" {
		return "", false
	}
	text, err := os.ReadFile(filepath.Join(string(o), name))
	return strings.TrimSpace(string(text)), err == nil
}

// before is what a call does before its work: an error of the whole call, and
// one for each claim.
func (o orders) before(call string) (whole, claim error) {
	for {
		if _, hang := o.read(call + "-hang"); !hang {
			break
		}
		time.Sleep(glance)
	}
	if text, fail := o.read(call + "-fail"); fail {
		return errors.New(text), nil
	}
	if text, fail := o.read(call + "-fail-claim"); fail {
		return nil, errors.New(text)
	}
	return nil, nil
}

type driver struct {
	name   string
	orders orders
	specs  specs
}

func (d driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	for _, claim := range claims {
		fmt.Printf("preparing %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
	}
	whole, failure := d.orders.before("prepare")
	if whole != nil {
		return nil, whole
	}
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		if failure != nil {
			results[claim.UID] = kubeletplugin.PrepareResult{Err: failure}
			continue
		}
		var devices []kubeletplugin.Device
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver != d.name {
				continue
			}
			id := fmt.Sprintf("%s/claim=%s-%s", d.name, claim.UID, result.Device)
			devices = append(devices, kubeletplugin.Device{
				Requests:     []string{result.Request},
				PoolName:     result.Pool,
				DeviceName:   result.Device,
				CDIDeviceIDs: []string{id},
			})
		}
		if err := d.specs.write(d.name, claim.UID, devices); err != nil {
			results[claim.UID] = kubeletplugin.PrepareResult{Err: err}
			continue
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices}
		fmt.Printf("prepared %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
	}
	return results, nil
}

func (d driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	for _, claim := range claims {
		fmt.Printf("unpreparing %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
	}
	whole, failure := d.orders.before("unprepare")
	if whole != nil {
		return nil, whole
	}
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = failure
		if failure == nil {
			results[claim.UID] = d.specs.remove(d.name, claim.UID)
		}
		if results[claim.UID] == nil {
			fmt.Printf("unprepared %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
		}
	}
	return results, nil
}

func (d driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

// healthy is a driver that tells of the health of all devices of its claims.
// The helper of v0.34 knows v1alpha1 of that service, and no other.
type healthy struct {
	driver
	health.UnimplementedDRAResourceHealthServer
	claims []runtime.Object
}

func (d healthy) NodeWatchResources(_ *health.NodeWatchResourcesRequest, stream health.DRAResourceHealth_NodeWatchResourcesServer) error {
	fmt.Println("watched")
	defer fmt.Println("watched no more")
	said := health.HealthStatus(-1)
	for at := time.Now(); ; {
		status := health.HealthStatus_HEALTHY
		if text, _ := d.orders.read("health"); text == "Unhealthy" {
			status = health.HealthStatus_UNHEALTHY
		}
		if status != said || time.Since(at) > 10*time.Second {
			if err := stream.Send(d.report(status)); err != nil {
				return err
			}
			said, at = status, time.Now()
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-time.After(glance):
		}
	}
}

func (d healthy) report(status health.HealthStatus) *health.NodeWatchResourcesResponse {
	report := &health.NodeWatchResourcesResponse{}
	for _, object := range d.claims {
		for _, result := range object.(*resourceapi.ResourceClaim).Status.Allocation.Devices.Results {
			report.Devices = append(report.Devices, &health.DeviceHealth{
				Device:          &health.DeviceIdentifier{PoolName: result.Pool, DeviceName: result.Device},
				Health:          status,
				LastUpdatedTime: time.Now().Unix(),
			})
		}
	}
	return report
}

// claimsOf reads the ResourceClaims of a manifest.
func claimsOf(path string) ([]runtime.Object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var claims []runtime.Object
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return claims, nil
		} else if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if err != nil {
			return nil, err
		}
		if claim, ok := object.(*resourceapi.ResourceClaim); ok {
			claims = append(claims, claim)
		}
	}
}

// printMethods tells of each call by which method it came.
func printMethods() grpc.UnaryServerInterceptor {
	var mutex sync.Mutex
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		mutex.Lock()
		fmt.Printf("call %s %s\n", path.Base(info.FullMethod), path.Dir(info.FullMethod))
		mutex.Unlock()
		return handler(ctx, request)
	}
}

// clientOf is a client of the server that the kubeconfig names, of the real API
// server, or of a fake one with the claims of the manifest.
func clientOf(kubeconfig, server, credentials, account, manifest string) (kubernetes.Interface, []runtime.Object, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, nil, err
		}
		client, err := kubernetes.NewForConfig(config)
		return client, nil, err
	}
	if server != "" {
		client, err := connect(server, credentials, account)
		return client, nil, err
	}
	claims, err := claimsOf(manifest)
	return fake.NewClientset(claims...), claims, err
}

func main() {
	name := flag.String("name", "", "driver name")
	root := flag.String("root", "", "as devmgrd --root")
	manifest := flag.String("manifest", "", "file with the claims")
	instance := flag.String("instance", "", "pod UID for a rolling update")
	api := flag.String("api", "v1,v1beta1", "services to offer")
	tells := flag.Bool("health", false, "tell of the health of devices")
	directory := flag.String("orders", "", "folder with orders")
	cdi := flag.String("cdi", "", "folder for CDI spec files")
	kubeconfig := flag.String("kubeconfig", "", "file that names a server")
	server := flag.String("server", "", "URL of a real API server")
	credentials := flag.String("credentials", "", "folder with ca.crt and the account's certificate")
	account := flag.String("account", "driver", "base name of the account's files")
	count := flag.Int("devices", 2, "devices to publish to a server")
	flag.Parse()

	client, claims, err := clientOf(*kubeconfig, *server, *credentials, *account, *manifest)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*root, "plugins", *name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		log.Fatal(err)
	}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName("node-1"),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.NodeV1(strings.Contains(","+*api+",", ",v1,")),
		kubeletplugin.NodeV1beta1(strings.Contains(","+*api+",", ",v1beta1,")),
		kubeletplugin.GRPCInterceptor(printMethods()),
	}
	if *instance != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(*instance)))
	}
	plain := driver{*name, orders(*directory), specs(*cdi)}
	var plugin kubeletplugin.DRAPlugin = plain
	if *tells {
		plugin = healthy{driver: plain, claims: claims}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	helper, err := kubeletplugin.Start(ctx, plugin, options...)
	if err != nil {
		log.Fatal(err)
	}
	if *server != "" || *kubeconfig != "" {
		if err := helper.PublishResources(ctx, slices("node-1", *count)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("started")
	<-ctx.Done()
	helper.Stop()
}
