// SPDX-License-Identifier: Apache-2.0
#include "dra/compat/spoken_api.h"

#include <algorithm>
#include <utility>

#include "dra/compat/old_versions.h"

namespace devmgr::dra {

const ApiVersion& SpokenApi::current() const {
  const ApiVersion* current = candidates_.front();
  for (const ApiVersion* candidate : candidates_) {
    if (candidate->service == current->service) current = candidate;
  }
  return *current;
}

bool SpokenApi::MayReadClaims() const {
  return std::any_of(candidates_.begin(), candidates_.end(),
                     [this](const ApiVersion* candidate) {
                       return candidate->service == current().service &&
                              candidate->handles == Handles::kNone;
                     });
}

const ApiVersion& SpokenApi::OnAnswer(const ApiVersion& asked, bool prepare,
                                      const std::string& answer) {
  // The last word on an API that was given up meanwhile.
  if (current().service != asked.service) return asked;
  answered_ = true;
  std::erase_if(candidates_, [&](const ApiVersion* candidate) {
    return candidate->service != asked.service;
  });
  if (candidates_.size() > 1 && prepare) {
    if (const ApiVersion* told = TellApart(answer)) candidates_ = {told};
  }
  return current();
}

bool SpokenApi::OnUnimplemented(const ApiVersion& asked) {
  if (current().service != asked.service) {
    // Known already; or a search that ended, and began anew, meanwhile.
    return Rank(asked) < Rank(current());
  }
  if (candidates_.back()->service == asked.service) {
    if (!answered_) candidates_ = all_;
    return false;
  }
  std::erase_if(candidates_, [&](const ApiVersion* candidate) {
    return candidate->service == asked.service;
  });
  return true;
}

std::size_t SpokenApi::Rank(const ApiVersion& version) const {
  return static_cast<std::size_t>(
      std::find(all_.begin(), all_.end(), &version) - all_.begin());
}

std::string SpokenApi::Name() const {
  std::string names;
  for (const ApiVersion* candidate : candidates_) {
    if (!names.empty()) names += '|';
    names += candidate->is_old ? candidate->name : candidate->announced;
  }
  return names;
}

}  // namespace devmgr::dra
