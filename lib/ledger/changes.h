// SPDX-License-Identifier: Apache-2.0
//
// What a committed batch changed, record by record.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::ledger {

/// What a batch makes of a record; null: there was none, or is none now.
template <typename Record>
struct Passage {
  std::shared_ptr<const Record> before;
  std::shared_ptr<const Record> now;
};

/// Extended resources for which a pod holds claims since a batch, and those for
/// which it holds none any more.
struct ClaimedResources {
  ObjectName pod;
  std::vector<ResourceName> taken = {};
  std::vector<ResourceName> given_up = {};
};

/// The changes of one batch, in the order in which they stand there. Lives as
/// long as the batch.
struct Changes {
  const state::Decision& decision;
  std::vector<Passage<state::PodRecord>> pods = {};
  std::vector<Passage<state::ClaimRecord>> claims = {};
  std::map<ResourceName, Passage<state::ResourceRecord>> resources = {};
  std::vector<Passage<state::ForeignHolderRecord>> holders = {};
  std::vector<Passage<state::LocalClaimRecord>> local_claims = {};
  std::vector<Passage<state::AuthorityRecord>> authority = {};
  std::vector<ClaimedResources> claimed = {};  ///< Of pods, where it changed.
};

/// Of a batch that is not applied to `before` yet.
Changes ChangesOf(const state::State& before, const state::Batch& batch);

/// The pod gives up its claims by this batch.
bool BeginsRelease(const Passage<state::PodRecord>& pod);

/// A room that follows what is committed. Runs on the manager's thread, for
/// each batch in order, after the projection has it.
using OnCommitted = std::function<void(const Changes&)>;

}  // namespace devmgr::ledger
