// SPDX-License-Identifier: Apache-2.0

// The endpoint for drivers, with the official client library and the official
// helper of drivers on the other end. DEVMGR_ENDPOINT_PEER is the program that
// serves it.
package endpoint

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

const (
	driverName = "gpu.example.com"
	patience   = 60 * time.Second
)

// server is the endpoint in a folder; it can be killed and started again.
type server struct {
	t       *testing.T
	folder  string
	command *exec.Cmd
	input   io.WriteCloser
}

func startServer(t *testing.T) *server {
	peer := os.Getenv("DEVMGR_ENDPOINT_PEER")
	if peer == "" {
		t.Skip("DEVMGR_ENDPOINT_PEER is not set")
	}
	folder, err := os.MkdirTemp("/tmp", "devmgr-")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, folder: folder}
	s.start()
	t.Cleanup(func() {
		s.kill()
		os.RemoveAll(folder)
	})
	return s
}

func (s *server) start() {
	s.command = exec.Command(os.Getenv("DEVMGR_ENDPOINT_PEER"), s.folder, driverName, "nic.example.com")
	s.command.Stderr = os.Stderr
	input, err := s.command.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.input = input
	output, err := s.command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		s.t.Fatalf("the endpoint says %q: %v", line, err)
	}
}

func (s *server) kill() {
	s.command.Process.Kill()
	s.command.Wait()
}

func (s *server) config() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.folder, "kubeconfig", driverName))
	if err != nil {
		s.t.Fatal(err)
	}
	config.QPS, config.Burst = 40, 40
	return config
}

// protobuf is what typed clients speak by default since v0.32.
func (s *server) protobuf() kubernetes.Interface {
	config := s.config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfigOrDie(config)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"a slice is one object in protobuf, JSON and v1beta1": testBodies,
		"clients and informers read and go on after a kill":   testReading,
		"drivers say how devices of claims are":               testDeviceStatus,
		"drivers write events":                                testEvents,
		"a driver on the helper publishes over a kill":        testHelper,
	} {
		t.Run(name, test)
	}
}

func fullSlice() *resourceapi.ResourceSlice {
	quantity := resource.MustParse("80Gi")
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "00000-gpu.example.com-n1-",
			Labels:       map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u-n1", Controller: ptr.To(true),
			}},
		},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driverName,
			NodeName: ptr.To("n1"),
			Pool:     resourceapi.ResourcePool{Name: "n1", Generation: 0, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{
				Name: "gpu-0",
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"model":   {StringValue: ptr.To("a100")},
					"empty":   {StringValue: ptr.To("")},
					"count":   {IntValue: ptr.To[int64](0)},
					"below":   {IntValue: ptr.To[int64](-5)},
					"no":      {BoolValue: ptr.To(false)},
					"version": {VersionValue: ptr.To("1.2.3")},
				},
				Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: quantity}},
				Taints: []resourceapi.DeviceTaint{{
					Key: "k", Value: "v", Effect: resourceapi.DeviceTaintEffectNoSchedule,
					TimeAdded: &metav1.Time{Time: time.Unix(1780000000, 0)},
				}},
			}},
		},
	}
}

// Protobuf and JSON, v1 and v1beta1: one object.
func testBodies(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	asJSON := kubernetes.NewForConfigOrDie(s.config())
	asProtobuf := s.protobuf()
	first, err := asProtobuf.ResourceV1().ResourceSlices().Create(ctx, fullSlice(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := asJSON.ResourceV1().ResourceSlices().Create(ctx, fullSlice(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first.Spec, second.Spec) {
		t.Errorf("by protobuf %v, by JSON %v", first.Spec, second.Spec)
	}
	wanted := fullSlice().Spec
	wanted.Devices[0].Taints[0].TimeAdded = first.Spec.Devices[0].Taints[0].TimeAdded
	quantity := wanted.Devices[0].Capacity["memory"]
	if got := first.Spec.Devices[0].Capacity["memory"]; got.Value.Cmp(quantity.Value) != 0 {
		t.Errorf("the capacity is %v", got)
	}
	if !reflect.DeepEqual(first.Spec.Devices[0].Attributes, wanted.Devices[0].Attributes) {
		t.Errorf("the attributes are %v", first.Spec.Devices[0].Attributes)
	}
	if !first.Spec.Devices[0].Taints[0].TimeAdded.Time.Equal(time.Unix(1780000000, 0)) {
		t.Errorf("the taint is of %v", first.Spec.Devices[0].Taints[0].TimeAdded)
	}
	beta, err := asProtobuf.ResourceV1beta1().ResourceSlices().Create(ctx, &resourcev1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "beta"},
		Spec: resourcev1beta1.ResourceSliceSpec{
			Driver: driverName, NodeName: "n1",
			Pool: resourcev1beta1.ResourcePool{Name: "n1", ResourceSliceCount: 1},
			Devices: []resourcev1beta1.Device{{Name: "gpu-0", Basic: &resourcev1beta1.BasicDevice{
				Attributes: map[resourcev1beta1.QualifiedName]resourcev1beta1.DeviceAttribute{"model": {StringValue: ptr.To("a100")}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := asJSON.ResourceV1().ResourceSlices().Get(ctx, beta.Name, metav1.GetOptions{})
	if err != nil || *stored.Spec.Devices[0].Attributes["model"].StringValue != "a100" {
		t.Errorf("as v1: %v, %v", stored, err)
	}

	changed := first.DeepCopy()
	changed.Spec.Devices[0].Name = "gpu-1"
	updated, err := asProtobuf.ResourceV1().ResourceSlices().Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil || updated.Generation != 2 {
		t.Errorf("updated: %v, %v", updated, err)
	}
	if _, err := asProtobuf.ResourceV1().ResourceSlices().Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an old version: %v", err)
	}
	same, err := asProtobuf.ResourceV1().ResourceSlices().Update(ctx, updated, metav1.UpdateOptions{})
	if err != nil || same.ResourceVersion != updated.ResourceVersion {
		t.Errorf("nothing changed: %v, %v", same, err)
	}
	wrong := types.UID("wrong")
	err = asProtobuf.ResourceV1().ResourceSlices().Delete(ctx, first.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		t.Errorf("another UID: %v", err)
	}
	err = asProtobuf.ResourceV1().ResourceSlices().Delete(ctx, first.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &first.UID}})
	if err != nil {
		t.Errorf("delete: %v", err)
	}
	invalid := fullSlice()
	invalid.Spec.Devices[0].Name = "Not A Name"
	if _, err := asProtobuf.ResourceV1().ResourceSlices().Create(ctx, invalid, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a bad name: %v", err)
	}
	foreign := fullSlice()
	foreign.Spec.Driver = "nic.example.com"
	if _, err := asProtobuf.ResourceV1().ResourceSlices().Create(ctx, foreign, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a slice of another driver: %v", err)
	}
}

// Typed and dynamic clients, lists, watches, informers, discovery.
func testReading(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	client := s.protobuf()
	version, err := client.Discovery().ServerVersion()
	if err != nil || version.Minor != "36" {
		t.Errorf("version %v, %v", version, err)
	}
	if _, lists, err := client.Discovery().ServerGroupsAndResources(); err != nil || len(lists) < 3 {
		t.Errorf("discovery: %v, %v", lists, err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
	if err != nil || node.UID != "u-n1" {
		t.Errorf("node %v, %v", node, err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	slices := factory.Resource().V1().ResourceSlices()
	classes := factory.Resource().V1().DeviceClasses()
	slices.Informer()
	classes.Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	if _, err := classes.Lister().Get("gpu"); err != nil {
		t.Error(err)
	}
	group := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	untyped := dynamic.NewForConfigOrDie(s.config()).Resource(group)
	watch, err := untyped.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + driverName})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	made, err := client.ResourceV1().ResourceSlices().Create(ctx, fullSlice(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if event := <-watch.ResultChan(); event.Type != "ADDED" {
		t.Errorf("the watch shows %v", event)
	}
	eventually(t, "the informer sees the slice", func() bool {
		_, err := slices.Lister().Get(made.Name)
		return err == nil
	})
	list, err := untyped.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.GetResourceVersion() == "" {
		t.Errorf("the dynamic client lists %v, %v", list, err)
	}
	// The informer goes on when the endpoint was killed and came back.
	s.kill()
	s.start()
	eventually(t, "another slice is made", func() bool {
		_, err = client.ResourceV1().ResourceSlices().Create(ctx, fullSlice(), metav1.CreateOptions{})
		return err == nil
	})
	eventually(t, "the informer sees both", func() bool {
		return len(slices.Informer().GetStore().ListKeys()) == 2
	})
}

// The status of devices: update, and apply.
func testDeviceStatus(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	claims := s.protobuf().ResourceV1().ResourceClaims("default")
	claim, err := claims.Get(ctx, "c", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{{
		Driver: driverName, Pool: "n1", Device: "gpu-0",
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Up", LastTransitionTime: metav1.Now(),
		}},
		NetworkData: &resourceapi.NetworkDeviceData{InterfaceName: "eth1", IPs: []string{"10.0.0.1/24"}},
	}}
	updated, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(updated.Status.Devices) != 1 || len(updated.Status.Allocation.Devices.Results) != 2 {
		t.Errorf("the status is %v", updated.Status)
	}
	updated.Status.Devices[0].Device = "gpu-7"
	if _, err := claims.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a device that is not allocated: %v", err)
	}
	if _, err := claims.Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a claim that is not there: %v", err)
	}
}

func testEvents(t *testing.T) {
	s := startServer(t)
	events := s.protobuf().CoreV1().Events("default")
	made, err := events.Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "c.1", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "ResourceClaim", Namespace: "default", Name: "c"},
		Reason:         "Fine", Message: "it works", Count: 1,
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	if err != nil || made.UID == "" {
		t.Fatalf("%v, %v", made, err)
	}
}

type plugin struct{ prepared chan string }

func (p plugin) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	return nil, nil
}
func (p plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	return nil, nil
}
func (p plugin) HandleError(_ context.Context, err error, message string) {
	fmt.Println(message, err)
}

func pool(count int) resourceslice.DriverResources {
	var slices []resourceslice.Slice
	for i := range count {
		slices = append(slices, resourceslice.Slice{Devices: []resourceapi.Device{{Name: fmt.Sprintf("gpu-%d", i)}}})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{"n1": {Slices: slices}}}
}

// A driver on the official helper publishes, changes what it publishes, and
// goes on over a restart of the endpoint.
func testHelper(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := s.protobuf()
	folder := filepath.Join(s.folder, "plugin")
	registry := filepath.Join(s.folder, "registry")
	for _, dir := range []string{folder, registry} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	helper, err := kubeletplugin.Start(ctx, plugin{},
		kubeletplugin.DriverName(driverName), kubeletplugin.NodeName("n1"), kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(folder), kubeletplugin.RegistrarDirectoryPath(registry))
	if err != nil {
		t.Fatal(err)
	}
	defer helper.Stop()
	count := func() int {
		list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return -1
		}
		return len(list.Items)
	}
	if err := helper.PublishResources(ctx, pool(3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three slices are there", func() bool { return count() == 3 })
	if err := helper.PublishResources(ctx, pool(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two slices are there", func() bool { return count() == 2 })
	s.kill()
	if err := helper.PublishResources(ctx, pool(4)); err != nil {
		t.Fatal(err)
	}
	s.start()
	eventually(t, "four slices are there", func() bool { return count() == 4 })
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range list.Items {
		if slice.OwnerReferences[0].UID != "u-n1" || slice.Spec.Pool.ResourceSliceCount != 4 {
			t.Errorf("the slice is %v", slice)
		}
	}
}
