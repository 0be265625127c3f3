// SPDX-License-Identifier: Apache-2.0
#include "endpoint/object_journal.h"

#include <algorithm>

#include "api/quote.h"
#include "common/status.h"
#include "endpoint/object_files.h"
#include "endpoint/store_journal.h"

namespace devmgr::endpoint {
namespace {

using Change = ObjectSpace::Change;
using Object = ObjectSpace::Object;

/// Objects that are read at a time.
constexpr std::size_t kPage = 64;
/// Bytes that are taken over in one write, about.
constexpr std::size_t kWrite = 1024 * 1024;

bool IsOfRevision(std::string_view key) {
  return key == kLastRevision || key == kReservedRevision;
}

/// Many changes, in writes of a bounded size.
class ChunkedWrite {
 public:
  explicit ChunkedWrite(ObjectSpace& space) : space_(space) {}
  absl::Status Add(Change change) {
    bytes_ += change.key.size() + (change.value ? change.value->size() : 0);
    changes_.push_back(std::move(change));
    return bytes_ < kWrite ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    DEVMGR_RETURN_IF_ERROR(space_.Write(changes_));
    changes_.clear();
    bytes_ = 0;
    return absl::OkStatus();
  }

 private:
  ObjectSpace& space_;
  std::vector<Change> changes_;
  std::size_t bytes_ = 0;
};

}  // namespace

ObjectJournal::ObjectJournal(std::shared_ptr<ObjectSpace> space,
                             Options options)
    : space_(std::move(space)),
      options_(std::move(options)),
      earlier_(options_.folder),
      later_(options_.folder.string() + "-later") {}

absl::StatusOr<bool> ObjectJournal::IsUsed() {
  DEVMGR_ASSIGN_OR_RETURN(const bool has_files, earlier_.Exist());
  if (has_files) return true;
  DEVMGR_ASSIGN_OR_RETURN(const auto objects, space_->Read("", 1));
  return !objects.empty();
}

absl::Status ObjectJournal::Append(const JournalEntry& entry) {
  DEVMGR_RETURN_IF_ERROR(CheckObjectKey(entry.key));
  std::vector<Change> changes;
  if (entry.value.empty()) {
    changes.push_back({entry.key, std::nullopt});
    changes.push_back({kLastRevision, WithRevision(entry.revision, "")});
  } else {
    changes.push_back({entry.key, WithRevision(entry.revision, entry.value)});
  }
  DEVMGR_RETURN_IF_ERROR(space_->Write(changes));
  return later_.Remove(entry.key);
}

absl::Status ObjectJournal::AppendLater(const JournalEntry& entry) {
  DEVMGR_RETURN_IF_ERROR(CheckObjectKey(entry.key));
  return entry.value.empty() ? later_.Remove(entry.key) : later_.Put(entry);
}

absl::Status ObjectJournal::Reserve(std::uint64_t revision) {
  const Change change{kReservedRevision, WithRevision(revision, "")};
  return space_->Write({&change, 1});
}

absl::Status ObjectJournal::End(std::uint64_t last_revision) {
  const Change changes[] = {{kLastRevision, WithRevision(last_revision, "")},
                            {kReservedRevision, std::nullopt}};
  return space_->Write(changes);
}

absl::StatusOr<JournalContent> ObjectJournal::Replay() {
  DEVMGR_RETURN_IF_ERROR(TakeOver());
  JournalContent content;
  std::vector<Change> damaged;
  DEVMGR_RETURN_IF_ERROR(VisitAll([&](const Object& object) -> absl::Status {
    const bool is_whole =
        AddTo(content, object) &&
        // What else the endpoint may find wrong with it.
        (!options_.drops_damaged || IsOfRevision(object.key) ||
         RecordOf(content.entries.back()).ok());
    if (is_whole) return absl::OkStatus();
    const absl::Status status = DataLossError(
        "object {} in the ledger's database is not as the endpoint for drivers "
        "wrote it",
        api::Quoted(object.key));
    if (!options_.drops_damaged) return status;
    if (!content.entries.empty() && content.entries.back().key == object.key) {
      content.entries.pop_back();
    }
    if (options_.log) {
      options_.log(MessageOf(status) +
                   "; it is removed, and its driver publishes it anew");
    }
    damaged.push_back({object.key, std::nullopt});
    return absl::OkStatus();
  }));
  if (!damaged.empty()) {
    damaged.push_back({kLastRevision, WithRevision(content.last_revision, "")});
    DEVMGR_RETURN_IF_ERROR(space_->Write(damaged));
  }
  DEVMGR_RETURN_IF_ERROR(later_.AddTo(content));
  return content;
}

absl::Status ObjectJournal::TakeOver() {
  DEVMGR_ASSIGN_OR_RETURN(const bool has_files, earlier_.Exist());
  // Also what an interrupted removal has left.
  if (!has_files) return earlier_.Remove();
  DEVMGR_ASSIGN_OR_RETURN(JournalContent content, earlier_.Read());
  // The files are newer: they are removed when they have been taken over, so
  // that an earlier version has been here since.
  JournalContent old;
  ChunkedWrite write(*space_);
  std::vector<std::string> gone;
  DEVMGR_RETURN_IF_ERROR(VisitAll([&](const Object& object) -> absl::Status {
    AddTo(old, object);
    gone.push_back(object.key);
    return absl::OkStatus();
  }));
  const std::uint64_t last = std::max(content.last_revision, old.last_revision);
  DEVMGR_RETURN_IF_ERROR(write.Add({kLastRevision, WithRevision(last, "")}));
  for (const std::string& key : gone) {
    if (key == kLastRevision) continue;
    DEVMGR_RETURN_IF_ERROR(write.Add({key, std::nullopt}));
  }
  for (const JournalEntry& entry : content.entries) {
    DEVMGR_RETURN_IF_ERROR(
        write.Add({entry.key, WithRevision(entry.revision, entry.value)}));
  }
  DEVMGR_RETURN_IF_ERROR(write.Flush());
  return earlier_.Remove();
}

absl::Status ObjectJournal::VisitAll(
    const std::function<absl::Status(const Object&)>& visit) {
  std::string after;
  for (;;) {
    DEVMGR_ASSIGN_OR_RETURN(const auto page, space_->Read(after, kPage));
    for (const Object& object : page) DEVMGR_RETURN_IF_ERROR(visit(object));
    if (page.size() < kPage) return absl::OkStatus();
    after = page.back().key;
  }
}

bool ObjectJournal::AddTo(JournalContent& content, const Object& object) {
  std::string_view rest = object.value;
  JournalEntry entry;
  if (!TakeRevision(rest, entry.revision)) return false;
  content.last_revision = std::max(content.last_revision, entry.revision);
  if (IsOfRevision(object.key)) return rest.empty();
  if (rest.empty() || !CheckObjectKey(object.key).ok()) return false;
  entry.key = object.key;
  entry.value = rest;
  content.entries.push_back(std::move(entry));
  return true;
}

}  // namespace devmgr::endpoint
