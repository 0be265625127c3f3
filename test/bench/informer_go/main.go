// SPDX-License-Identifier: Apache-2.0

// The pods of a node at an API server, by the informer of client-go: the other
// side of source_follower.cc, with the same output.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Marked with this label is the pod whose changes are timed.
const label = "n"

func say(what string) {
	fmt.Printf("%s %d\n", what, time.Now().UnixNano())
}

func main() {
	url := flag.String("url", "", "of the server")
	all := flag.Bool("all", false, "follow claims, classes and slices, too")
	flag.Parse()
	config := &rest.Config{Host: *url, QPS: 1000, Burst: 1000}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan struct{})
	informers := []cache.SharedIndexInformer{}
	add := func(object runtime.Object, getter cache.Getter, resource string, selector fields.Selector) cache.SharedIndexInformer {
		list := cache.NewListWatchFromClient(getter, resource, metav1.NamespaceAll, selector)
		informer := cache.NewSharedIndexInformer(list, object, 0, cache.Indexers{})
		informers = append(informers, informer)
		return informer
	}
	pods := add(&corev1.Pod{}, client.CoreV1().RESTClient(), "pods",
		fields.OneTermEqualSelector("spec.nodeName", "n1"))
	if *all {
		group := client.ResourceV1().RESTClient()
		add(&resourcev1.ResourceClaim{}, group, "resourceclaims", fields.Everything())
		add(&resourcev1.DeviceClass{}, group, "deviceclasses", fields.Everything())
		add(&resourcev1.ResourceSlice{}, group, "resourceslices",
			fields.OneTermEqualSelector("spec.nodeName", "n1"))
	}
	seen := map[types.UID]string{}
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, object interface{}) {
			pod := object.(*corev1.Pod)
			if value := pod.Labels[label]; value != seen[pod.UID] {
				seen[pod.UID] = value
				say("pod " + value)
			}
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, informer := range informers {
		go informer.Run(stop)
	}
	for _, informer := range informers {
		if !cache.WaitForCacheSync(stop, informer.HasSynced) {
			os.Exit(1)
		}
	}
	say(fmt.Sprintf("synced %d", len(pods.GetStore().ListKeys())))
	// Until standard input ends.
	os.Stdin.Read(make([]byte, 1))
}
