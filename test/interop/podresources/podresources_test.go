// SPDX-License-Identifier: Apache-2.0

// Package podresources has the official client of the pod-resources API list
// what devmgrd gives to pods. Where its programs are is told by DEVMGR_TOOLS.
package podresources

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

const patience = 60 * time.Second // For what takes none: machines are busy.

// Claim `two` has two requests, and a device of one driver for each.
const manifest = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: default, uid: uid-of-two}
spec:
  devices:
    requests:
    - {name: r1, exactly: {deviceClassName: nic.example.com, allocationMode: ExactCount, count: 1}}
    - {name: r2, exactly: {deviceClassName: nic.example.com, allocationMode: ExactCount, count: 1}}
status:
  allocation:
    devices:
      results:
      - {request: r1, driver: nic.example.com, pool: node-1, device: nic-0}
      - {request: r2, driver: nic.example.com, pool: node-1, device: nic-1}
  reservedFor: [{resource: pods, name: all, uid: uid-of-all}]
---
apiVersion: v1
kind: Pod
metadata: {name: all, namespace: default, uid: uid-of-all}
spec:
  initContainers:
  - {name: setup, image: busybox, resources: {limits: {example.com/gpu: 1}}}
  - {name: side, image: busybox, restartPolicy: Always, resources: {limits: {example.com/gpu: 1}}}
  containers:
  - name: main
    image: busybox
    resources: {limits: {example.com/gpu: 2}, claims: [{name: net, request: r1}]}
  - {name: second, image: busybox, resources: {claims: [{name: net}]}}
  - {name: idle, image: busybox}
  resourceClaims: [{name: net, resourceClaimName: two}]
---
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: default, uid: uid-of-bare}
spec: {containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {name: over, namespace: default, uid: uid-of-over}
spec: {containers: [{name: main, image: busybox}]}
status: {phase: Succeeded}
`

type node struct {
	t    *testing.T
	root string
}

func tool(name string) string {
	return filepath.Join(os.Getenv("DEVMGR_TOOLS"), name, name)
}

// start runs a program until the test is over, and shows what it printed when
// that has failed.
func (n *node) start(name string, arguments ...string) {
	n.t.Helper()
	log := filepath.Join(n.root, name+".log")
	out, err := os.Create(log)
	if err != nil {
		n.t.Fatal(err)
	}
	defer out.Close()
	command := exec.Command(tool(name), arguments...)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait() // How it ends is its own business.
		if n.t.Failed() {
			text, _ := os.ReadFile(log)
			n.t.Logf("%s:\n%s", name, text)
		}
	})
}

func (n *node) ctl(arguments ...string) error {
	all := append([]string{"--endpoint", n.root + "/devmgr.sock"}, arguments...)
	out, err := exec.Command(tool("devmgrctl"), all...).CombinedOutput()
	if err != nil {
		n.t.Logf("devmgrctl %s: %s", strings.Join(arguments, " "), out)
	}
	return err
}

// newNode has a plugin with four devices on NUMA node 0, which every machine has,
// a driver, and pods that are Ready. No pod has a sandbox.
func newNode(t *testing.T) *grpc.ClientConn {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "devmgr-") // Sockets have short paths.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Mkdir(filepath.Join(root, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := &node{t, root}
	n.start("devmgrd", "--root", root)
	n.start("fake-device-plugin", "--root", root, "--resource", "example.com/gpu",
		"--devices", "4", "--numa", "0")
	n.start("fake-dra-driver", "--root", root, "--name", "nic.example.com")
	file := filepath.Join(root, "manifests", "pods.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"all", "bare"} {
		for end := time.Now().Add(patience); n.ctl("wait", "pod", pod, "--for=ready", "--timeout", "20s") != nil; {
			if time.Now().After(end) {
				t.Fatalf("pod %s does not become Ready", pod)
			}
			time.Sleep(30 * time.Millisecond) // devmgrd may not listen yet.
		}
	}
	connection, err := grpc.NewClient("unix://"+root+"/pod-resources/kubelet.sock",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// device is an entry of a list, as text.
type device struct {
	resource, ids string
	numa          []int64
}

func devicesOf(entries []*v1.ContainerDevices) []device {
	var devices []device
	for _, entry := range entries {
		one := device{entry.ResourceName, strings.Join(entry.DeviceIds, ","), nil}
		for _, node := range entry.GetTopology().GetNodes() {
			one.numa = append(one.numa, node.ID)
		}
		devices = append(devices, one)
	}
	return devices
}

// claims is `claim driver/pool/device CDI names` of each device.
func claims(container *v1.ContainerResources) []string {
	var all []string
	for _, claim := range container.DynamicResources {
		for _, one := range claim.ClaimResources {
			var names []string
			for _, cdi := range one.CdiDevices {
				names = append(names, cdi.Name)
			}
			all = append(all, claim.ClaimNamespace+"/"+claim.ClaimName+" "+one.DriverName+"/"+
				one.PoolName+"/"+one.DeviceName+" "+strings.Join(names, ","))
		}
	}
	return all
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestPodResources(t *testing.T) {
	connection := newNode(t)
	client := v1.NewPodResourcesListerClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := client.List(ctx, &v1.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	byPod := map[string]*v1.PodResources{}
	for _, pod := range list.PodResources {
		byPod[pod.Namespace+"/"+pod.Name] = pod
	}
	// BO-116, BO-117.
	t.Run("active pods are listed, also without devices", func(t *testing.T) {
		expect(t, "pods", len(list.PodResources), 2)
		bare := byPod["default/bare"]
		if bare == nil || len(bare.Containers) != 1 {
			t.Fatalf("%v", list)
		}
		expect(t, "devices", len(bare.Containers[0].Devices), 0)
		expect(t, "claims", len(bare.Containers[0].DynamicResources), 0)
	})
	all := byPod["default/all"]
	if all == nil {
		t.Fatalf("%v", list)
	}
	byName := map[string]*v1.ContainerResources{}
	var names []string
	for _, container := range all.Containers {
		names = append(names, container.Name)
		byName[container.Name] = container
	}
	// BO-118.
	t.Run("sidecars come first, other init containers do not", func(t *testing.T) {
		expect(t, "containers", names, []string{"side", "main", "second", "idle"})
	})
	// BO-119, BO-120.
	t.Run("an entry for each device and NUMA node", func(t *testing.T) {
		seen := map[string]int64{}
		for _, name := range []string{"side", "main"} {
			for _, one := range devicesOf(byName[name].GetDevices()) {
				expect(t, "resource", one.resource, "example.com/gpu")
				if len(one.numa) != 1 || strings.Contains(one.ids, ",") {
					t.Fatalf("%v", one)
				}
				seen[one.ids] = one.numa[0]
			}
		}
		expect(t, "devices of the sidecar", len(byName["side"].GetDevices()), 1)
		expect(t, "devices of the container", len(byName["main"].GetDevices()), 2)
		expect(t, "devices", len(seen), 3)
		allocatable, err := client.GetAllocatableResources(ctx, &v1.AllocatableResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range devicesOf(allocatable.Devices) {
			if numa, held := seen[one.ids]; held {
				expect(t, "NUMA node of "+one.ids, one.numa, []int64{numa})
			}
		}
	})
	// BO-121, BO-122.
	t.Run("each device of a claim has its own CDI names, and is referred to", func(t *testing.T) {
		const one = "default/two nic.example.com/node-1/nic-0 nic.example.com/claim=uid-of-two-nic-0-0"
		const two = "default/two nic.example.com/node-1/nic-1 nic.example.com/claim=uid-of-two-nic-1-1"
		expect(t, "main", claims(byName["main"]), []string{one})
		expect(t, "second", claims(byName["second"]), []string{one, two})
		expect(t, "idle", len(byName["idle"].GetDynamicResources()), 0)
	})
	t.Run("no CPUs and no memory", func(t *testing.T) {
		for _, container := range all.Containers {
			expect(t, container.Name, len(container.CpuIds)+len(container.Memory), 0)
		}
	})
	// BO-123.
	t.Run("allocatable are devices of plugins, held or not", func(t *testing.T) {
		allocatable, err := client.GetAllocatableResources(ctx, &v1.AllocatableResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		devices := devicesOf(allocatable.Devices)
		expect(t, "devices", len(devices), 4)
		for i, one := range devices {
			expect(t, "resource", one.resource, "example.com/gpu")
			expect(t, "ID", one.ids, fmt.Sprintf("gpu-%d", i))
			expect(t, "NUMA nodes", one.numa, []int64{0})
		}
		expect(t, "CPUs and memory", len(allocatable.CpuIds)+len(allocatable.Memory), 0)
	})
	// BO-124: before any pod has a sandbox, too.
	t.Run("Get gives what List gives", func(t *testing.T) {
		for _, pod := range list.PodResources {
			got, err := client.Get(ctx, &v1.GetPodResourcesRequest{PodName: pod.Name, PodNamespace: pod.Namespace})
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got.PodResources, pod) {
				t.Errorf("got %v, want %v", got.PodResources, pod)
			}
		}
		for _, name := range []string{"none", "over"} {
			_, err := client.Get(ctx, &v1.GetPodResourcesRequest{PodName: name, PodNamespace: "default"})
			expect(t, "code", status.Code(err), codes.NotFound)
			expect(t, "text", status.Convert(err).Message(), "pod "+name+" in namespace default not found")
		}
	})
	// BO-126: as the kubelet's, it has no sidecars.
	t.Run("v1alpha1 has containers, resources and IDs", func(t *testing.T) {
		older, err := v1alpha1.NewPodResourcesListerClient(connection).List(ctx, &v1alpha1.ListPodResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "pods", len(older.PodResources), len(list.PodResources))
		for i, pod := range older.PodResources {
			newer := list.PodResources[i]
			expect(t, "pod", pod.Namespace+"/"+pod.Name, newer.Namespace+"/"+newer.Name)
			var containers []*v1.ContainerResources
			for _, container := range newer.Containers {
				if container.Name != "side" {
					containers = append(containers, container)
				}
			}
			if len(pod.Containers) != len(containers) {
				t.Fatalf("containers of %s: got %v", pod.Name, pod.Containers)
			}
			for j, container := range pod.Containers {
				expect(t, "container", container.Name, containers[j].Name)
				var ids, want []string
				for _, entry := range container.Devices {
					expect(t, "resource", entry.ResourceName, "example.com/gpu")
					ids = append(ids, entry.DeviceIds...)
				}
				for _, entry := range containers[j].Devices {
					want = append(want, entry.DeviceIds...)
				}
				expect(t, "devices of "+container.Name, ids, want)
			}
		}
	})
}
