// SPDX-License-Identifier: Apache-2.0
//
// Between what a store makes durable and the journal.
#pragma once

#include <absl/status/statusor.h>

#include "apistore/store.h"
#include "endpoint/journal.h"

namespace devmgr::endpoint {

JournalEntry EntryOf(const apistore::StoreRecord& record);
/// DataLoss for an entry that EntryOf did not make.
absl::StatusOr<apistore::StoreRecord> RecordOf(const JournalEntry& entry);

}  // namespace devmgr::endpoint
