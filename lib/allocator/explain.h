// SPDX-License-Identifier: Apache-2.0
//
// Why there is no solution: for each request and device the first test that
// refuses it, in the attempt that got furthest.
#pragma once

#include <vector>

#include "allocator/constraints.h"
#include "allocator/eligibility.h"
#include "allocator/inventory.h"
#include "allocator/refusals.h"
#include "allocator/requests.h"
#include "allocator/selector_table.h"
#include "allocator/trial.h"

namespace devmgr::allocator {

/// What a search without a solution leaves behind, borrowed.
struct Failure {
  const Inventory& inventory;
  const Requests& requests;
  Eligibility& eligibility;
  SelectorTable& selectors;
  AttributeTable& attributes;
};

/// Of each request and alternative, in their order. `furthest` is taken anew on
/// `trial`, in which nothing is chosen, and given back. Each alternative is
/// judged without the devices of its siblings, as the search tries it.
/// Selectors are asked of devices that are held, too: a device that does not
/// match is of no interest to the request.
std::vector<RequestRefusals> ExplainRefusals(
    const Failure& failure, Trial& trial, const std::vector<Chosen>& furthest);

}  // namespace devmgr::allocator
