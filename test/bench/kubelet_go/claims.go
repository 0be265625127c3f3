// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/klog/v2"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/state"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

// checkpointName is how dra.Manager calls its file.
const checkpointName = "dra_manager_state"

// cluster is an API server that answers out of a map: less work than any real one.
type cluster struct {
	kubernetes.Interface
	resourceclient.ResourceV1Interface
	claims map[string]*resourceapi.ResourceClaim
}

func (c *cluster) ResourceV1() resourceclient.ResourceV1Interface { return c }

func (c *cluster) ResourceClaims(string) resourceclient.ResourceClaimInterface {
	return claimGetter{claims: c.claims}
}

func (c *cluster) ResourceSlices() resourceclient.ResourceSliceInterface { return noSlices{} }

type claimGetter struct {
	resourceclient.ResourceClaimInterface
	claims map[string]*resourceapi.ResourceClaim
}

func (c claimGetter) Get(_ context.Context, name string, _ metav1.GetOptions) (*resourceapi.ResourceClaim, error) {
	claim := c.claims[name]
	if claim == nil {
		return nil, fmt.Errorf("no claim %s", name)
	}
	return claim, nil
}

// noSlices has nothing to delete for a node that starts.
type noSlices struct {
	resourceclient.ResourceSliceInterface
}

func (noSlices) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return nil
}

// podOfOneContainer is `default/<name>` with the UID `uid-of-<name>`.
func podOfOneContainer(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
	}
}

// podOfClaims has a container that uses all of these claims.
func podOfClaims(name string, claims ...string) *v1.Pod {
	pod := podOfOneContainer(name)
	for i := range claims {
		called := fmt.Sprintf("it-%d", i)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{Name: called, ResourceClaimName: &claims[i]})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, v1.ResourceClaim{Name: called})
	}
	return pod
}

// claimOf is the claim with the name of its only pod.
func claimOf(pod *v1.Pod) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: types.UID("uid-of-claim-" + pod.Name)},
		Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
				Results: []resourceapi.DeviceRequestAllocationResult{
					{Request: "r", Driver: driverName, Pool: "pool-0", Device: "dev-" + pod.Name}},
			}},
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
		},
	}
}

// draNode is a node with a dra.Manager.
type draNode struct {
	folder  string
	cluster *cluster
	driver  *driver
	manager *dra.Manager
	cancel  context.CancelFunc
}

func newDRANode(below string) *draNode {
	folder := mustGet(os.MkdirTemp(below, "dra-"))
	return &draNode{
		folder:  folder,
		cluster: &cluster{claims: map[string]*resourceapi.ResourceClaim{}},
		driver:  startDriver(filepath.Join(folder, "dra.sock")),
	}
}

// keep writes the manager's file with these claims, as the manager does.
func (n *draNode) keep(claims state.ClaimInfoStateList) {
	must(mustGet(state.NewCheckpointer(n.folder, checkpointName)).Store(mustGet(state.NewCheckpoint(claims))))
}

func (n *draNode) open() {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.manager = mustGet(dra.NewManager(klog.Background(), n.cluster, n.folder))
	// What its clean-up once a minute does is not measured.
	unready := config.NewSourcesReady(func(sets.Set[string]) bool { return false })
	must(n.manager.Start(ctx, func() []*v1.Pod { return nil },
		func(context.Context) (*v1.Node, error) { return &v1.Node{}, nil }, unready))
}

func (n *draNode) register() {
	must(n.manager.GetWatcherHandler().RegisterPlugin(context.Background(), driverName, n.driver.socket,
		[]string{drapb.DRAPluginService}, nil))
}

// close is the end of the process.
func (n *draNode) close() {
	n.cancel()
	n.manager.Stop()
}

func (n *draNode) end() {
	n.driver.stop()
	must(os.RemoveAll(n.folder))
}

func (n *draNode) prepare(pod *v1.Pod) { must(n.manager.PrepareResources(context.Background(), pod)) }

func (n *draNode) unprepare(pod *v1.Pod) {
	must(n.manager.UnprepareResources(context.Background(), pod))
}

func (n *draNode) resolve(pod *v1.Pod) {
	devices := mustGet(n.manager.GetResources(pod, &pod.Spec.Containers[0])).CDIDevices
	if len(devices) != len(pod.Spec.ResourceClaims) {
		log.Fatalf("%d devices for %d claims", len(devices), len(pod.Spec.ResourceClaims))
	}
}

// keptClaim is one as FillLedger of ../support.cc makes them.
func keptClaim(pod, number int) state.ClaimInfoState {
	uid := fmt.Sprintf("00000000-0000-4000-9%03d-%012d", number, pod)
	return state.ClaimInfoState{
		ClaimUID:  types.UID(uid),
		ClaimName: fmt.Sprintf("pod-%d-%d", pod, number),
		Namespace: "default",
		PodUIDs:   sets.New(fmt.Sprintf("00000000-0000-4000-8000-%012d", pod)),
		DriverState: map[string]state.DriverState{driverName: {Devices: []state.Device{{
			PoolName: "pool-0", DeviceName: fmt.Sprintf("gpu-%d", pod), RequestNames: []string{"gpu"},
			CDIDeviceIDs: []string{driverName + "/claim=" + uid}}}}},
	}
}

func restartClaims(r report, below string, pods, claims int) {
	node := newDRANode(below)
	defer node.end()
	var kept state.ClaimInfoStateList
	var names []string
	for pod := range pods {
		names = nil
		for number := range claims {
			kept = append(kept, keptClaim(pod, number))
			names = append(names, kept[len(kept)-1].ClaimName)
		}
	}
	node.keep(kept)
	last := podOfClaims("last", names...)
	of := fmt.Sprintf("restart, %d pods, %d claims, until ", pods, pods*claims)
	rounds := r.count(30, 3)
	r.add(of+"resolve answers", "ms", timesOf(rounds, func() {
		node.open()
		node.resolve(last)
	}, node.close))
	added := podOfClaims("new", "new")
	node.cluster.claims["new"] = claimOf(added)
	r.add(of+"a new claim is prepared", "ms", timesOf(rounds, func() {
		node.open()
		node.register()
		node.prepare(added)
	}, func() {
		node.unprepare(added)
		node.close()
	}))
}

func liveWithClaims(r report, below string, others int) {
	node := newDRANode(below)
	defer node.end()
	count := r.count(lives, 20)
	var pods []*v1.Pod
	for i := range others + count {
		name := fmt.Sprintf("p%d", i)
		pods = append(pods, podOfClaims(name, name))
		node.cluster.claims[name] = claimOf(pods[i])
	}
	node.open()
	defer node.close()
	node.register()
	for _, pod := range pods[:others] {
		node.prepare(pod)
	}
	var starts, ends []time.Duration
	for end := time.Now().Add(patience); len(starts) < count && time.Now().Before(end); {
		pod := pods[others+len(starts)]
		starts = append(starts, timeOf(func() {
			node.prepare(pod)
			node.resolve(pod)
		}))
		ends = append(ends, timeOf(func() { node.unprepare(pod) }))
	}
	of := fmt.Sprintf("a claim's pod beside %d claims: ", others)
	r.add(of+"until it is Ready", "us", starts)
	r.add(of+"its end", "us", ends)
}
