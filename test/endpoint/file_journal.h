// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "apistore/object_meta.h"
#include "apistore/patch.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// A line of JSON per entry, in a file that outlives the endpoint.
class FileJournal : public Journal {
 public:
  explicit FileJournal(std::filesystem::path file) : file_(std::move(file)) {}

  absl::Status Append(const JournalEntry& entry) override {
    if (fails) return UnavailableError("the disk is full");
    const std::string line = apistore::Dump({{"revision", entry.revision},
                                             {"key", entry.key},
                                             {"value", entry.value}}) +
                             "\n";
    const UniqueFd fd(
        ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    const bool written = ::write(fd.get(), line.data(), line.size()) ==
                         static_cast<ssize_t>(line.size());
    return written ? absl::OkStatus() : UnavailableError("not written");
  }
  absl::StatusOr<JournalContent> Replay() override {
    JournalContent content;
    std::map<std::string, JournalEntry> latest;
    std::ifstream in(file_);
    for (std::string line; std::getline(in, line);) {
      const auto json = apistore::ParseForeignJson(line);
      if (!json.ok()) break;  // Cut short: it was not durable.
      JournalEntry entry{(*json)["revision"].get<std::uint64_t>(),
                         (*json)["key"].get<std::string>(),
                         (*json)["value"].get<std::string>()};
      content.last_revision = entry.revision;
      latest[entry.key] = std::move(entry);
    }
    for (auto& [key, entry] : latest) {
      if (!entry.value.empty()) content.entries.push_back(std::move(entry));
    }
    return content;
  }

  bool fails = false;  ///< Set while no request is under way.

 private:
  const std::filesystem::path file_;
};

}  // namespace devmgr::endpoint
