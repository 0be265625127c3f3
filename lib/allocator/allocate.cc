// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/constraints.h"
#include "allocator/eligibility.h"
#include "allocator/explain.h"
#include "allocator/holdings.h"
#include "allocator/inventory.h"
#include "allocator/likeness.h"
#include "allocator/requests.h"
#include "allocator/results.h"
#include "allocator/search.h"
#include "allocator/selector_table.h"
#include "allocator/trial.h"
#include "common/status.h"

namespace devmgr::allocator {

/// What is known of the devices of an inventory, whatever claims hold.
struct Tables {
  Tables(const Inventory& inventory, const Options& options)
      : selectors(inventory, options.selectors, options.limits.interrupted),
        attributes(inventory) {}

  SelectorTable selectors;
  AttributeTable attributes;
};

namespace {

using PoolState = GatheredPool::State;

/// Looks up what "all" is.
///   InvalidArgument, Cancelled  of selectors
///   Unavailable                 a pool that is incomplete or invalid might
///                               have some
absl::Status CollectAll(const Inventory& inventory, Eligibility& eligibility,
                        RequestNumber number, Requests& requests) {
  Request& request = requests.requests[number];
  for (DeviceNumber device = 0; device < inventory.devices().size(); ++device) {
    switch (eligibility.IsPartOfAll(number, device)) {
      case Eligibility::Verdict::kYes:
        request.all.push_back(device);
        break;
      case Eligibility::Verdict::kError:
        return eligibility.Error(number, device);
      default:
        break;
    }
  }
  request.wanted = static_cast<std::int64_t>(request.all.size());
  for (const Pool& pool : inventory.pools()) {
    if (pool.state == PoolState::kUsable ||
        !eligibility.MayHave(number, pool.id.driver)) {
      continue;
    }
    return UnavailableError(
        "claim {}, request {}: asks for all devices, but resource pool {}/{} "
        "is currently {}: {}",
        requests.claims[request.claim].Text(), request.name, pool.id.driver,
        pool.id.pool,
        pool.state == PoolState::kIncomplete ? "being updated" : "invalid",
        pool.problem);
  }
  return absl::OkStatus();
}

std::string InvalidPools(const Inventory& inventory) {
  std::string text;
  for (const Pool& pool : inventory.pools()) {
    if (pool.state != PoolState::kInvalid) continue;
    text += fmt::format("{}{}/{}: {}", text.empty() ? "" : "; ", pool.id.driver,
                        pool.id.pool, pool.problem);
  }
  return text.empty() ? text
                      : "invalid resource pools were encountered: " + text;
}

/// One search, and what it needs.
class Solve {
 public:
  Solve(const Inventory& inventory, const Holdings& holdings, Tables& tables,
        const Options& options)
      : inventory_(inventory),
        holdings_(holdings),
        options_(options),
        selectors_(tables.selectors),
        attributes_(tables.attributes) {}

  Outcome Run(std::span<const DeviceClass* const> classes,
              std::span<const ResourceClaim* const> claims) {
    selectors_.TakeFigures();  // Of searches before.
    if (absl::Status status = Prepare(classes, claims); !status.ok()) {
      return Ended(status);
    }
    Trial trial(inventory_, requests_, *eligibility_, attributes_,
                holdings_.counters);
    Likeness likeness(inventory_, requests_, *eligibility_, attributes_);
    Search search(inventory_, requests_, *eligibility_, trial,
                  options_.reduce_symmetry ? &likeness : nullptr,
                  options_.limits);
    const Search::End end = search.Run();
    outcome_.steps = search.steps();
    outcome_.figures = search.figures();
    switch (end) {
      case Search::End::kSolved:
        outcome_.result = Result::kSolved;
        outcome_.allocations =
            MakeAllocations(inventory_, requests_, *eligibility_, search, trial,
                            options_.new_share_id);
        break;
      case Search::End::kNone:
        if (options_.explain) {
          outcome_.refusals = ExplainRefusals(
              {inventory_, requests_, *eligibility_, selectors_, attributes_},
              trial, search.furthest());
        }
        outcome_.message = InvalidPools(inventory_);
        outcome_.result = outcome_.message.empty() ? Result::kNoSolution
                                                   : Result::kHereNotNow;
        break;
      default:
        return Ended(search.error());
    }
    outcome_.warnings = std::move(eligibility_->warnings);
    CountEvaluations();
    return std::move(outcome_);
  }

 private:
  absl::Status Prepare(std::span<const DeviceClass* const> classes,
                       std::span<const ResourceClaim* const> claims) {
    DEVMGR_RETURN_IF_ERROR(ReadRequests(claims, classes, inventory_.features(),
                                        selectors_, attributes_, requests_));
    eligibility_.emplace(inventory_, holdings_, requests_, selectors_,
                         attributes_, options_);
    // What is wrong with the claims stays so, whatever becomes of pools.
    absl::Status missing;
    for (RequestNumber i = 0; i < requests_.requests.size(); ++i) {
      if (!requests_.requests[i].wants_all) continue;
      const absl::Status status =
          CollectAll(inventory_, *eligibility_, i, requests_);
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      missing.Update(status);
    }
    DEVMGR_RETURN_IF_ERROR(CheckCounts(requests_));
    return missing;
  }

  void CountEvaluations() {
    const SearchFigures asked = selectors_.TakeFigures();
    outcome_.figures.evaluated = asked.evaluated;
    outcome_.figures.known = asked.known;
    outcome_.figures.cost = asked.cost;
  }

  Outcome Ended(const absl::Status& status) {
    CountEvaluations();
    outcome_.message = MessageOf(status);
    outcome_.result = absl::IsCancelled(status)     ? Result::kInterrupted
                      : absl::IsUnavailable(status) ? Result::kHereNotNow
                                                    : Result::kBadInput;
    return std::move(outcome_);
  }

  const Inventory& inventory_;
  const Holdings& holdings_;
  const Options& options_;
  SelectorTable& selectors_;
  AttributeTable& attributes_;
  Requests requests_;
  std::optional<Eligibility> eligibility_;
  Outcome outcome_;
};

}  // namespace

std::string_view ResultName(Result result) {
  switch (result) {
    case Result::kSolved:
      return "solved";
    case Result::kNoSolution:
      return "no-solution";
    case Result::kHereNotNow:
      return "here-not-now";
    case Result::kBadInput:
      return "bad-input";
    case Result::kInterrupted:
      return "interrupted";
  }
  return {};
}

Outcome Allocate(const Inventory& inventory,
                 std::span<const DeviceClass* const> classes,
                 const AllocatedState& held,
                 std::span<const ResourceClaim* const> claims,
                 const Options& options) {
  Tables tables(inventory, options);
  const Holdings holdings(inventory, held);
  return Solve(inventory, holdings, tables, options).Run(classes, claims);
}

struct Judge::Parts {
  std::shared_ptr<const Inventory> inventory;
  std::vector<const DeviceClass*> classes;
  Options options;
  Tables tables;
  std::optional<Holdings> holdings;
};

Judge::Judge(std::shared_ptr<const Inventory> inventory,
             std::vector<const DeviceClass*> classes, Options options)
    : parts_(new Parts{inventory, std::move(classes), options,
                       Tables(*inventory, options), std::nullopt}) {}

Judge::~Judge() = default;

Outcome Judge::Allocate(const AllocatedState& held,
                        std::span<const ResourceClaim* const> claims) {
  auto& [inventory, classes, options, tables, holdings] = *parts_;
  if (!holdings || !holdings->state.SharesAllWith(held)) {
    holdings.emplace(*inventory, held);
  }
  return Solve(*inventory, *holdings, tables, options).Run(classes, claims);
}

}  // namespace devmgr::allocator
