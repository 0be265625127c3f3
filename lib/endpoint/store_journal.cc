// SPDX-License-Identifier: Apache-2.0
#include "endpoint/store_journal.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quote.h"
#include "apistore/patch.h"
#include "common/status.h"

namespace devmgr::endpoint {
namespace {

using apistore::Json;
using apistore::StoreRecord;

}  // namespace

JournalEntry EntryOf(const StoreRecord& record) {
  JournalEntry entry;
  entry.revision = record.revision;
  entry.key = fmt::format("{}/{}/{}/{}", record.group, record.resource,
                          record.key.ns, record.key.name);
  if (record.object == nullptr) return entry;
  Json value = {{"object", *record.object}};
  if (!record.owners.empty()) value["owners"] = record.owners;
  entry.value = apistore::Dump(value);
  return entry;
}

absl::StatusOr<StoreRecord> RecordOf(const JournalEntry& entry) {
  std::vector<std::string> parts;
  std::string_view rest = entry.key;
  for (std::size_t at = rest.find('/'); at != std::string_view::npos;
       at = rest.find('/')) {
    parts.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at + 1);
  }
  parts.emplace_back(rest);
  if (parts.size() != 4) {
    return DataLossError("the journal has the key {}", api::Quoted(entry.key));
  }
  StoreRecord record{entry.revision,       parts[0], parts[1],
                     {parts[2], parts[3]}, nullptr,  {}};
  if (entry.value.empty()) return record;
  absl::StatusOr<Json> value = apistore::ParseForeignJson(entry.value);
  if (!value.ok() || !value->is_object() || !value->contains("object")) {
    return DataLossError("the journal has no object under the key {}",
                         api::Quoted(entry.key));
  }
  record.object = std::make_shared<const Json>(std::move((*value)["object"]));
  if (const auto owners = value->find("owners");
      owners != value->end() && owners->is_object()) {
    for (const auto& [key, owner] : owners->items()) {
      if (owner.is_string()) record.owners[key] = owner.get<std::string>();
    }
  }
  return record;
}

}  // namespace devmgr::endpoint
