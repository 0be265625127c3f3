// SPDX-License-Identifier: Apache-2.0
//
// events: what happened, oldest first.
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "commands.h"
#include "objects.h"
#include "reconnect.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{30'000};

std::string EventObject(const EventInfo& event) {
  return event.object_kind + "/" + event.object.ToString();
}

bool IsRecent(const Session& session, WallTime time) {
  const auto* since = std::get_if<WallTime>(&session.options().since);
  return since == nullptr || time >= *since;
}

/// Prints events batch by batch, in the format asked for.
class EventPrinter {
 public:
  explicit EventPrinter(const Session& session)
      : session_(session), table_(MakeTable(session)) {}

  /// Keeps what -n and --since ask for.
  std::vector<EventInfo> Wanted(std::vector<EventInfo> events) const {
    const std::string& ns = session_.options().ns;
    std::erase_if(events, [&](const EventInfo& event) {
      return (!ns.empty() && event.object.ns != ns) ||
             !IsRecent(session_, event.time);
    });
    return events;
  }

  /// The whole answer, when nothing is to follow.
  void PrintAll(const std::vector<EventInfo>& events) {
    if (session_.is_document()) {
      std::vector<Json> items;
      for (const EventInfo& event : events) items.push_back(ItemOf(event));
      PrintDocument(session_.out(), ListOf("EventList", std::move(items)),
                    session_.options().format);
    } else if (events.empty()) {
      session_.Print(table_);
    } else {
      PrintMore(events);
    }
  }

  /// Some of a stream: a line or a document per event.
  void PrintMore(const std::vector<EventInfo>& events) {
    if (events.empty()) return;
    std::ostream& out = session_.out();
    for (const EventInfo& event : events) {
      switch (session_.options().format) {
        case Format::kJson:
          out << OneLine({{"type", event.count > 1 ? "MODIFIED" : "ADDED"},
                          {"object", DocumentOf("Event", ItemOf(event))}})
              << "\n";
          break;
        case Format::kYaml:
          out << "---\n";
          PrintDocument(out, DocumentOf("Event", ItemOf(event)), Format::kYaml);
          break;
        case Format::kName:
          out << "event/" << event.sequence << "\n";
          break;
        default:
          table_.Add(RowOf(event));
      }
    }
    if (!table_.empty()) table_.Print(out);
    out.flush();
    if (session_.environment().on_printed) session_.environment().on_printed();
  }

 private:
  static Table MakeTable(const Session& session) {
    std::vector<std::string> headers = {"TIME", "TYPE", "REASON", "OBJECT",
                                        "MESSAGE"};
    if (session.wide()) headers.insert(headers.begin(), "SEQUENCE");
    // Later rows should stand below the first ones.
    if (!session.options().follow) return session.MakeTable(std::move(headers));
    return session.MakeTable(std::move(headers),
                             session.wide()
                                 ? std::vector<std::size_t>{8, 24, 7, 24, 32}
                                 : std::vector<std::size_t>{24, 7, 24, 32});
  }

  std::vector<Cell> RowOf(const EventInfo& event) const {
    std::vector<Cell> row = {TimeText(event.time),
                             {event.warning ? "Warning" : "Normal",
                              event.warning ? Tone::kWarn : Tone::kPlain},
                             event.reason,
                             EventObject(event),
                             MessageOf(event)};
    if (session_.wide()) {
      row.insert(row.begin(), fmt::format("{}", event.sequence));
    }
    return row;
  }

  const Session& session_;
  Table table_;
};

/// Goes on until the program is ended. Survives a restart of the daemon, whose
/// events are counted from the start again.
absl::Status Follow(const Session& session,
                    std::unique_ptr<Inspector> inspector) {
  const auto node = inspector->Node();
  if (!node.ok()) return node.status();
  WallTime started = node->started;
  EventPrinter printer(session);
  std::uint64_t last = 0;
  while (session.out()) {
    auto events = inspector->Events(last, kPoll);
    if (events.ok()) {
      for (const EventInfo& event : *events) {
        last = std::max(last, event.sequence);
      }
      printer.PrintMore(printer.Wanted(*std::move(events)));
      continue;
    }
    if (!IsLost(events.status())) return events.status();
    session.Note("connection lost, events may be missing: " +
                 MessageOf(events.status()));
    const WallTime before = started;
    auto again = Reconnect(session, &started);
    if (!again.ok()) return again.status();
    inspector = *std::move(again);
    if (started != before) last = 0;
    session.Note("connected again");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Events(const Session& session) {
  if (absl::Status status = session.CheckOnline("events"); !status.ok()) {
    return MakeError(status.code(), MessageOf(status) + ", or read 'history'");
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  if (session.options().follow) {
    return Follow(session, *std::move(inspector));
  }
  auto events = (*inspector)->Events(0, milliseconds(0));
  if (!events.ok()) return events.status();
  EventPrinter printer(session);
  printer.PrintAll(printer.Wanted(*std::move(events)));
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
