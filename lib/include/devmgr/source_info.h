// SPDX-License-Identifier: Apache-2.0
//
// How a source of objects does: what `devmgrctl get sources` shows.
#pragma once

#include <devmgr/export.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devmgr {

/// Requests to a server, as they were answered.
struct SourceRequests {
  std::string verb;      ///< `get`, `list`, `watch`.
  std::string resource;  ///< `pods`; of discovery the group.
  /// Of HTTP; 0: there was no answer.
  int code = 0;
  std::uint64_t count = 0;
  friend bool operator==(const SourceRequests&,
                         const SourceRequests&) = default;
};

/// A time that is not set is not known. What only a server has is empty for a
/// directory.
struct SourceInfo {
  std::string name;  ///< As the ledger knows it: ObjectSource::Describe.
  /// `Watching`, `Listing` or `Waiting`, while nothing is wrong; else the
  /// reason: `NoConfiguration`, `NoCredentials`, `Unauthenticated`,
  /// `Forbidden`, `NotServed`, `Throttled`, `Failing`.
  std::string state;
  std::string server;            ///< URL.
  std::string api_version;       ///< `resource.k8s.io/v1`.
  std::string resource_version;  ///< Of the pods.
  WallTime last_list;            ///< When all pods were listed last.
  /// When a watch of pods brought something last, be it a bookmark.
  WallTime last_event;
  /// What is known of the pods is no older than this: now while they are
  /// watched.
  WallTime known_at;
  std::string last_error;    ///< Stays when things go well again.
  std::uint64_t queued = 0;  ///< Claims that are still to be read.
  bool complete = false;     ///< See ObjectSnapshot.
  std::uint64_t watch_restarts = 0;
  std::vector<SourceRequests> requests;
};

}  // namespace devmgr
