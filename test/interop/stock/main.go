// SPDX-License-Identifier: Apache-2.0

// A driver on the official helper of DRA drivers, as vendors build theirs: it
// publishes devices to the server of a kubeconfig, says something of the
// devices that it prepares, and changes what it publishes. It is built with
// several releases of the helper. Prints one line per event.
//
//	stock --name DRIVER --root DIR --kubeconfig FILE --node NODE
//	      [--devices N] [--per-slice N] [--status update|apply]
//	      [--orders DIR] [--instance UID] [--qps N]
//
// While DIR holds a file `devices`, that many devices are published; a file
// `taint` names one that gets a taint.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	resourceac "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type plugin struct {
	name   string
	status string
	cdi    string
	client kubernetes.Interface
}

func (p plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var devices []kubeletplugin.Device
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver != p.name {
				continue
			}
			devices = append(devices, kubeletplugin.Device{
				Requests:     []string{result.Request},
				PoolName:     result.Pool,
				DeviceName:   result.Device,
				CDIDeviceIDs: []string{fmt.Sprintf("%s/claim=%s-%s", p.name, claim.UID, result.Device)},
			})
		}
		err := p.writeSpec(claim.UID, devices)
		if err == nil {
			err = p.report(ctx, claim, devices)
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
		fmt.Printf("prepared %s %v\n", claim.UID, err)
	}
	return results, nil
}

// report says in the claim that each device is ready.
func (p plugin) report(ctx context.Context, claim *resourceapi.ResourceClaim, devices []kubeletplugin.Device) error {
	now := metav1.Now()
	claims := p.client.ResourceV1().ResourceClaims(claim.Namespace)
	var err error
	switch p.status {
	case "update":
		claim = claim.DeepCopy()
		claim.Status.Devices = nil
		for _, device := range devices {
			claim.Status.Devices = append(claim.Status.Devices, resourceapi.AllocatedDeviceStatus{
				Driver: p.name, Pool: device.PoolName, Device: device.DeviceName,
				Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Prepared", LastTransitionTime: now}},
				Data:       &runtime.RawExtension{Raw: []byte(`{"by": "update"}`)},
			})
		}
		_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	case "apply":
		status := resourceac.ResourceClaimStatus()
		for _, device := range devices {
			status.WithDevices(resourceac.AllocatedDeviceStatus().
				WithDriver(p.name).WithPool(device.PoolName).WithDevice(device.DeviceName).
				WithData(runtime.RawExtension{Raw: []byte(`{"by": "apply"}`)}).
				WithNetworkData(resourceac.NetworkDeviceData().WithInterfaceName("net1").WithIPs("192.0.2.5/24")))
		}
		_, err = claims.ApplyStatus(ctx, resourceac.ResourceClaim(claim.Name, claim.Namespace).WithStatus(status),
			metav1.ApplyOptions{FieldManager: p.name, Force: true})
	}
	return err
}

func (p plugin) specPath(claim types.UID) string {
	return filepath.Join(p.cdi, fmt.Sprintf("%s-claim_%s.json", p.name, claim))
}

func (p plugin) writeSpec(claim types.UID, devices []kubeletplugin.Device) error {
	var entries []any
	for _, device := range devices {
		entries = append(entries, map[string]any{
			"name": fmt.Sprintf("%s-%s", claim, device.DeviceName),
			"containerEdits": map[string]any{
				"env":         []string{"GPU=" + device.DeviceName},
				"deviceNodes": []any{map[string]any{"path": "/dev/" + device.DeviceName, "hostPath": "/dev/null"}},
			},
		})
	}
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": p.name + "/claim", "devices": entries})
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.specPath(claim)+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(p.specPath(claim)+".tmp", p.specPath(claim))
}

func (p plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
		if err := os.Remove(p.specPath(claim.UID)); err != nil && !os.IsNotExist(err) {
			results[claim.UID] = err
		}
		fmt.Printf("unprepared %s\n", claim.UID)
	}
	return results, nil
}

func (p plugin) HandleError(_ context.Context, err error, message string) {
	fmt.Printf("error %s: %v\n", message, err)
}

// wanted is what is to be published.
type wanted struct {
	count    int
	perSlice int
	taint    string
}

// read takes what the orders say over what the flags said.
func (w wanted) read(orders string) wanted {
	if text, err := os.ReadFile(filepath.Join(orders, "devices")); err == nil {
		if count, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			w.count = count
		}
	}
	if text, err := os.ReadFile(filepath.Join(orders, "taint")); err == nil {
		w.taint = strings.TrimSpace(string(text))
	}
	return w
}

func (w wanted) resources(node string) resourceslice.DriverResources {
	var slices []resourceslice.Slice
	var devices []resourceapi.Device
	for i := range w.count {
		device := resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)}
		if device.Name == w.taint {
			device.Taints = []resourceapi.DeviceTaint{{Key: "example.com/broken", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		devices = append(devices, device)
		if len(devices) == w.perSlice || i == w.count-1 {
			slices = append(slices, resourceslice.Slice{Devices: devices})
			devices = nil
		}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: slices}}}
}

// follow publishes anew whenever the orders change.
func follow(ctx context.Context, helper *kubeletplugin.Helper, node, orders string, flags wanted) {
	published := flags.read(orders)
	for {
		// Another process gives the orders: there is nothing to wait on.
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
		if next := flags.read(orders); next != published {
			published = next
			if err := helper.PublishResources(ctx, next.resources(node)); err != nil {
				log.Fatal(err)
			}
			fmt.Printf("published %d\n", next.count)
		}
	}
}

func main() {
	name := flag.String("name", "", "driver name")
	root := flag.String("root", "", "as devmgrd --root")
	node := flag.String("node", "node-1", "name of the node")
	kubeconfig := flag.String("kubeconfig", "", "file that names a server")
	status := flag.String("status", "", "how to report devices in claims: update or apply")
	orders := flag.String("orders", "", "folder with orders")
	instance := flag.String("instance", "", "pod UID for a rolling update")
	qps := flag.Float64("qps", 0, "requests a second; 0: the library's own")
	devices := flag.Int("devices", 4, "devices to publish")
	perSlice := flag.Int("per-slice", 128, "devices of a slice")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = float32(*qps), int(*qps)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*root, "plugins", *name)
	cdi := filepath.Join(*root, "cdi")
	for _, folder := range []string{data, cdi, filepath.Join(*root, "plugins_registry")} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			log.Fatal(err)
		}
	}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	}
	if *instance != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(*instance)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	helper, err := kubeletplugin.Start(ctx, plugin{*name, *status, cdi, client}, options...)
	if err != nil {
		log.Fatal(err)
	}
	flags := wanted{*devices, *perSlice, ""}
	if err := helper.PublishResources(ctx, flags.read(*orders).resources(*node)); err != nil {
		log.Fatal(err)
	}
	fmt.Println("started")
	if *orders != "" {
		follow(ctx, helper, *node, *orders, flags)
	}
	<-ctx.Done()
	helper.Stop()
}
