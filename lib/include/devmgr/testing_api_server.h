// SPDX-License-Identifier: Apache-2.0
//
// A small API server for tests and demos, that can be made to misbehave. Link
// `devmgr_testing`.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::testing {

/// One misbehaviour of a ScriptedApiServer. It applies to requests that fit
/// all that is given, after `skip` of them went by, and is used up after
/// `times` (0: never). A request takes the first one that fits.
struct ApiFault {
  enum class Action {
    kDelay,       ///< Do the work, answer after `delay`.
    kFail,        ///< Do nothing, answer `code`: 401, 403, 404, 409, 410, 429,
                  ///< 500, 503, 504, ... with `message` and `retry_after`. 504
                  ///< has the cause `ResourceVersionTooLarge`.
    kLoseAnswer,  ///< Do the work and close the connection.
    kCut,         ///< Close after `bytes` of the answer, headers included; of a
                  ///< watch: of its events.
    kSilence,     ///< Never answer, and keep the connection; of a watch: after
                  ///< the headers and `bytes` of its events.
    kLie,         ///< Say `resource_version` in the metadata of the answer.
    // Of watches:
    kHalfEvent,   ///< Close in the middle of the first event.
    kErrorEvent,  ///< Send an event ERROR with `code` behind the first events,
                  ///< if there are any at the start, and end the stream.
    kEnd,         ///< End the stream in order after `delay`.
  };
  Action action = Action::kDelay;
  /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
  /// `deletecollection`; empty: any. Discovery has `discover`.
  std::string verb;
  std::string resource;  ///< `pods`, `pods/status`; empty: any.
  std::string ns;        ///< Empty: any, here and below.
  std::string name;
  int skip = 0;
  int times = 1;
  std::chrono::milliseconds delay{0};
  std::size_t bytes = 0;
  int code = 500;
  int retry_after = 0;  ///< Seconds; 0: none.
  std::string message;
  std::string resource_version;
};

struct ScriptedApiServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: one that is free.
  /// PEM files; with both it serves https.
  std::filesystem::path certificate;
  std::filesystem::path key;
  /// Whose signatures on certificates of clients count as verified.
  std::filesystem::path client_authority;
  /// When not empty, each request has to bear this token: 401 otherwise.
  std::string token;
  /// What is there to begin with: manifests in YAML or JSON, stored as they
  /// are, with their UIDs and their status.
  std::string objects;
  std::vector<ApiFault> faults;
  std::string git_version = "v1.36.0+devmgr";
  /// Changes that are remembered; what is older is answered 410.
  std::size_t history = 10'000;
  /// Events that wait for a client before its watch is closed.
  std::size_t watch_events = 1024;
  std::size_t max_connections = 64;
};

/// An API server with pods, nodes, events, leases, and the types of
/// resource.k8s.io in v1, v1beta2 and v1beta1. It keeps all in memory, knows no
/// permissions, no schemas and no controllers. Thread-safe.
class DEVMGR_EXPORT ScriptedApiServer {
 public:
  /// A request that came.
  struct Call {
    std::string verb;      ///< As in ApiFault; empty for paths not served.
    std::string resource;  ///< `pods`, `pods/status`.
    std::string ns;
    std::string name;
    std::string method;
    std::string target;  ///< Path and query as they came.
    std::string content_type;
    std::string accept;
    std::string authorization;
    std::string user_agent;
    std::string body;
    /// Of the client's certificate; empty without one.
    std::string certificate_subject;
    bool certificate_verified = false;
  };

  /// InvalidArgument for options and objects that cannot be used, Unavailable
  /// when it cannot listen.
  static absl::StatusOr<std::unique_ptr<ScriptedApiServer>> Start(
      ScriptedApiServerOptions options);
  /// Closes all connections.
  ~ScriptedApiServer();
  ScriptedApiServer(const ScriptedApiServer&) = delete;
  ScriptedApiServer& operator=(const ScriptedApiServer&) = delete;

  std::uint16_t port() const;
  const std::string& url() const { return url_; }  ///< `http://127.0.0.1:41234`

  /// Stores objects as they are, in the place of those of the same names, and
  /// shows the change to watches. InvalidArgument: the objects before the bad
  /// one are stored.
  absl::Status Apply(std::string_view manifests);
  /// Does what a request does, without HTTP and faults: `method` and `target`
  /// as there. Returns the body as JSON; the error has the code that fits.
  absl::StatusOr<std::string> Do(std::string_view method,
                                 std::string_view target,
                                 std::string_view body = "",
                                 std::string_view content_type = "");

  void AddFault(ApiFault fault);
  void ClearFaults();
  /// Of requests from now on.
  void SetToken(std::string token);
  /// Forgets all changes until now: watches from there are answered 410.
  void Compact();
  void SendBookmarks();
  enum class WatchEnd { kInOrder, kCut, kSilence };
  /// Ends all watches that are open.
  void EndWatches(WatchEnd how);

  /// Those that came so far, in order.
  std::vector<Call> Calls() const;
  /// Waits until `count` requests have come; false after `patience`.
  bool WaitForCalls(std::size_t count, std::chrono::milliseconds patience);
  /// Waits until exactly `count` watches are open; false after `patience`.
  bool WaitForWatches(std::size_t count, std::chrono::milliseconds patience);
  std::size_t watches() const;

 private:
  class Impl;
  explicit ScriptedApiServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  std::string url_;
};

/// Reads faults: a YAML or JSON map with the list `faults` of `{action, verb,
/// resource, namespace, name, skip, times, delay, bytes, code, retryAfter,
/// message, resourceVersion}`; names of actions in kebab case (`half-event`),
/// delay in Go's notation (`250ms`).
///   InvalidArgument  names the field
DEVMGR_EXPORT absl::StatusOr<std::vector<ApiFault>> ReadApiFaults(
    std::string_view text);

}  // namespace devmgr::testing
