// SPDX-License-Identifier: Apache-2.0
//
// get changes [-f] [--after TOKEN]: what happened to devices, in order.
#include <fmt/core.h>

#include <utility>
#include <variant>

#include "commands.h"
#include "objects.h"
#include "reconnect.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

constexpr std::chrono::milliseconds kChangePoll{30'000};

/// For programs that keep what pods hold: what the change does to it.
const char* TypeOf(const DeviceChange& change) {
  if (change.kind == DeviceChangeKind::kReleased) return "DELETED";
  const bool is_new = change.kind == DeviceChangeKind::kHeld ||
                      change.kind == DeviceChangeKind::kAllocated;
  return is_new ? "ADDED" : "MODIFIED";
}

/// `example.com/gpu`, or `driver/pool` of devices that a claim has.
std::string SourceOf(const DeviceChange& change) {
  if (change.driver.empty()) return change.resource;
  return change.pool.empty() ? change.driver
                             : change.driver + "/" + change.pool;
}

std::string DeviceIdsText(const DeviceChange& change) {
  std::vector<std::string> ids(change.devices.begin(), change.devices.end());
  return Join(ids.empty() ? change.cdi_devices : ids, ",");
}

Cell StateCell(const DeviceChange& change) {
  if (change.health) {
    const bool works = *change.health == DeviceHealth::kHealthy;
    return {std::string(change.health->name()),
            works ? Tone::kGood : Tone::kBad};
  }
  return change.owner ? std::string(change.owner->name()) : std::string();
}

/// Prints changes part by part, in the format asked for.
class ChangePrinter {
 public:
  explicit ChangePrinter(const Session& session)
      : session_(session), table_(MakeTable(session)) {}

  /// Keeps what -n asks for.
  void KeepWanted(std::vector<DeviceChange>* changes) const {
    const std::string& ns = session_.options().ns;
    if (ns.empty()) return;
    std::erase_if(*changes, [&](const DeviceChange& change) {
      return change.pod.ns != ns;
    });
  }

  /// The whole answer, when nothing is to follow.
  void PrintAll(const DeviceChanges& all) {
    if (session_.is_document()) {
      std::vector<Json> items;
      for (const DeviceChange& change : all.changes) {
        items.push_back(ItemOf(change));
      }
      Json list = ListOf("DeviceChangeList", std::move(items));
      list["next"] = all.next.ToString();
      PrintDocument(session_.out(), list, session_.options().format);
    } else if (all.changes.empty()) {
      session_.Print(table_);
    } else {
      PrintMore(all.changes);
    }
  }

  /// Some of a stream: a line or a document for each change.
  void PrintMore(const std::vector<DeviceChange>& changes) {
    if (changes.empty()) return;
    std::ostream& out = session_.out();
    for (const DeviceChange& change : changes) {
      switch (session_.options().format) {
        case Format::kJson:
          out << OneLine(
                     {{"type", TypeOf(change)},
                      {"object", DocumentOf("DeviceChange", ItemOf(change))}})
              << "\n";
          break;
        case Format::kYaml:
          out << "---\n";
          PrintDocument(out, DocumentOf("DeviceChange", ItemOf(change)),
                        Format::kYaml);
          break;
        case Format::kName:
          out << "change/" << change.token.ToString() << "\n";
          break;
        default:
          table_.Add(RowOf(change));
      }
    }
    if (!table_.empty()) table_.Print(out);
    out.flush();
    if (session_.environment().on_printed) session_.environment().on_printed();
  }

 private:
  static Table MakeTable(const Session& session) {
    std::vector<std::string> headers = {
        "TIME",    "CHANGE", "POD",   "CONTAINER", "RESOURCE/DRIVER",
        "DEVICES", "STATE",  "REASON"};
    if (session.wide()) {
      for (const char* more :
           {"TOKEN", "UID", "CLAIM", "CDI DEVICES", "MESSAGE"}) {
        headers.emplace_back(more);
      }
    }
    // Later rows should stand below the first ones.
    if (!session.options().follow) return session.MakeTable(std::move(headers));
    return session.MakeTable(std::move(headers),
                             {24, 13, 24, 10, 20, 12, 9, 14});
  }

  std::vector<Cell> RowOf(const DeviceChange& change) const {
    std::vector<Cell> row = {TimeText(change.time), change.kind.name(),
                             change.pod.ToString(), change.container,
                             SourceOf(change),      DeviceIdsText(change),
                             StateCell(change),     change.reason};
    if (session_.wide()) {
      row.emplace_back(change.token.ToString());
      row.emplace_back(change.pod_uid.value);
      row.emplace_back(change.claim.ToString());
      row.emplace_back(Join(change.cdi_devices, ","));
      row.emplace_back(change.message);
    }
    return row;
  }

  const Session& session_;
  Table table_;
};

/// Where the command line has the reader begin.
ChangesFrom BeginOf(const Options& options) {
  if (options.after) return *options.after;
  if (options.follow) return FromSnapshot();
  return FromOldest();
}

/// Goes on until the program is ended. After a restart of the daemon it goes on
/// where it was.
absl::Status FollowChanges(const Session& session,
                           std::unique_ptr<Inspector> inspector) {
  ChangePrinter printer(session);
  ChangesFrom from = BeginOf(session.options());
  while (session.out()) {
    auto some = inspector->Changes(from, kChangePoll);
    if (some.ok()) {
      from = some->next;
      printer.KeepWanted(&some->changes);
      printer.PrintMore(some->changes);
      continue;
    }
    if (!IsLost(some.status())) return some.status();
    session.Note("connection lost: " + MessageOf(some.status()));
    WallTime started;
    auto again = Reconnect(session, &started);
    if (!again.ok()) return again.status();
    inspector = *std::move(again);
    session.Note("connected again, going on with the next change");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GetChanges(const Session& session) {
  if (session.options().follow) {
    absl::Status online = session.CheckOnline("following changes");
    if (!online.ok()) return online;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  if (session.options().follow)
    return FollowChanges(session, *std::move(inspector));
  DeviceChanges all;
  ChangesFrom from = BeginOf(session.options());
  do {
    auto some = (*inspector)->Changes(from, std::chrono::milliseconds(0));
    if (!some.ok()) return some.status();
    all.changes.insert(all.changes.end(), some->changes.begin(),
                       some->changes.end());
    all.next = some->next;
    all.more = some->more;
    from = all.next;
  } while (all.more);
  ChangePrinter printer(session);
  printer.KeepWanted(&all.changes);
  printer.PrintAll(all);
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
