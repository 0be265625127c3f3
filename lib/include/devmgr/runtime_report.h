// SPDX-License-Identifier: Apache-2.0
//
// What a CRI shim tells the manager of what it did, in the same process or over
// the inspection socket.
#pragma once

#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// What is known of the runtime now, and what was done so far.
struct RuntimeCounters {
  std::uint64_t sandboxes = 0;           ///< That are known.
  std::uint64_t foreign_sandboxes = 0;   ///< Of them: of no pod.
  std::uint64_t containers = 0;          ///< That are known.
  std::uint64_t unknown_containers = 0;  ///< Of them: of no known pod.
  // Since the shim began.
  std::uint64_t injected = 0;    ///< Containers changed.
  std::uint64_t unchanged = 0;   ///< Containers passed as they came.
  std::uint64_t refused = 0;     ///< Calls answered with an error of its own.
  std::uint64_t unreadable = 0;  ///< Requests that could not be read.
  std::uint64_t calls = 0;       ///< All that passed.
  std::uint64_t runtime_losses = 0;
  std::uint64_t turned_away = 0;  ///< Callers, for want of room.
  friend bool operator==(const RuntimeCounters&,
                         const RuntimeCounters&) = default;
};

/// One of a session, which is a shim from its start to its end.
struct RuntimeReport {
  std::string session;   ///< Distinct for each start of a shim.
  std::string name;      ///< CriShimOptions::name; may be empty.
  std::string listen;    ///< The shim's socket; of the sessions of one socket
                         ///< only the newest goes on.
  std::string endpoint;  ///< The runtime's socket.
  std::string runtime;   ///< Name and version; empty: not known yet.
  RuntimeCounters counters;
  /// Since the last report that was taken, in ascending order of the session's
  /// own numbers. One that comes again counts once.
  std::vector<EventInfo> events;
  /// Containers behind `endpoint` that hold devices which their pods were not
  /// given, as far as the shim can tell. The manager judges that by its ledger.
  std::vector<ForeignHolder> holders;
  /// `holders` are all there are: what is recorded of others of this endpoint
  /// is over. False: the shim does not know (yet).
  bool all_holders = false;
  bool over = false;  ///< The session ends with this report; holders stay.
  /// What the runtime has, where the manager goes by it
  /// (ReportedRuntimeSource). Null: as this session reported last.
  std::shared_ptr<const RuntimeSnapshot> runs;
  /// The last look that was asked for before the look that `runs` is of; 0:
  /// none was.
  std::uint64_t look = 0;
};

/// A session as the manager shows it.
struct RuntimeInfo {
  std::string session;
  std::string name;
  std::string listen;
  std::string endpoint;
  std::string runtime;
  RuntimeCounters counters;
  WallTime since;        ///< Of its first report.
  WallTime last_report;  ///< Of its latest one.
};

/// Events that one report may have.
inline constexpr std::size_t kMaxReportedEvents = 256;
/// Holders that one report may have, and devices that one of them may hold.
inline constexpr std::size_t kMaxReportedHolders = 1'024;
inline constexpr std::size_t kMaxHeldDevices = 1'024;
/// Characters that the name of a shim may have: letters, digits, `-`, `_` and
/// `.`.
inline constexpr std::size_t kMaxShimName = 63;
/// Whether a shim may have this name, which is not empty.
inline bool IsShimName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxShimName &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             "-_.") == std::string_view::npos;
}
/// Pods that one report may have, and sandboxes and containers of one of them.
inline constexpr std::size_t kMaxReportedPods = 4'096;
inline constexpr std::size_t kMaxReportedRuns = 4'096;

}  // namespace devmgr
