// SPDX-License-Identifier: Apache-2.0
//
// A Kubernetes API server as the source of objects.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/source_info.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace devmgr {

/// A request that was made in order to write, and what came of it.
struct ApiServerRequest {
  std::string
      verb;  ///< `get`, `create`, `patch`, `delete`, `deletecollection`.
  std::string resource;  ///< `nodes/status`.
  int code = 0;          ///< 0: there was no answer.
};

struct ApiServerOptions {
  /// Where server and credentials stand. Empty: the files and variables that a
  /// container of the cluster has.
  std::filesystem::path kubeconfig;
  /// Of the kubeconfig; empty: its current one.
  std::string context;
  /// The pods of this node are watched. Must not be empty.
  std::string node_name;

  /// The account may list and watch claims. False, as for the credentials of a
  /// node: each claim that a pod refers to is read by its name.
  bool watch_claims = false;
  /// The account may list and watch device classes, and slices of the node.
  bool watch_device_classes = false;
  bool watch_resource_slices = false;
  /// Have the server stream the first objects instead of listing them, where it
  /// can.
  bool stream_lists = false;

  /// A file in which the source remembers the version of the pods that it saw
  /// last, so that nothing older is taken in after a restart, and the UID of
  /// the node. When the node has another UID than the one remembered, no list
  /// is vouched for until one that is not is believed all the same
  /// (ObjectSource::Mark). It is written when pods were listed, and at most
  /// every ten seconds otherwise. Empty: nothing is remembered, and the node is
  /// not read.
  std::filesystem::path state_file;
  /// Requests that write, or read a single claim: so many in a second, and at
  /// once. Both positive. Lists and watches are not counted.
  double qps = 50;
  int burst = 100;
  /// This is the agent of the node: no kubelet runs here. The status of pods is
  /// written, and pods that have ended are deleted.
  bool node_agent = false;
  /// Called on the source's thread. Must not block.
  std::function<void(const ApiServerRequest& request)> on_request;
  /// Default: nothing is logged.
  LogSink log;
};

/// A source that is an API server.
class DEVMGR_EXPORT ApiServerSource : public ObjectSource {
 public:
  /// How it is, for people: `Watching; resource.k8s.io/v1; last error: ...`.
  /// Describe, by which the ledger knows the source, does not change.
  virtual std::string State() const = 0;
  /// Reads kubeconfig and credentials again, and tries at once what waits for
  /// its time: an operator may have mended something. Must not block.
  virtual void Hurry() = 0;
  /// Writes to the server (Host::object_sink): the status of the node, events,
  /// and deletions of slices; as the agent of the node also the status of pods,
  /// and their last deletion. Nothing waits for the server: of a status the
  /// latest counts, and of events the newest 1,000 are kept while it is away.
  /// Lives as long as the source.
  virtual ObjectSink& Sink() = 0;
  /// Waits for a thread of the source, which may be writing its file.
  virtual SourceInfo Info() const = 0;
};

/// Watches the pods of a node, and the claims that these refer to. A snapshot
/// is complete once all pods were listed, from the server's store; a server
/// that is away leaves the last one as it was. Pods whose deletion the server
/// reported are among `gone_pods`. A list after a restart or a break is
/// confirmed by a second one after 30 seconds, and is not vouched for until
/// then. Credentials are read again as their files change, and are part of no
/// text. Stops its threads in the destructor.
///
/// A kubeconfig that is not there, or has a mistake, is no error of this call:
/// it is among the problems of the snapshot, and is read again when it changes
/// and after a while. One that turns bad leaves the last one in use.
///   InvalidArgument     the name of the node is not set
///   FailedPrecondition  no kubeconfig is given, and this is no container of a
///                       cluster
DEVMGR_EXPORT absl::StatusOr<std::unique_ptr<ApiServerSource>> WatchApiServer(
    ApiServerOptions options);

}  // namespace devmgr
