// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "dra/api_version.h"

namespace devmgr::dra {

/// What is known of the API that a driver's endpoint speaks. Old drivers do not
/// say it; it shows in what they answer, and is remembered.
class SpokenApi {
 public:
  SpokenApi(const ApiVersion& version)
      : SpokenApi(std::vector<const ApiVersion*>{&version}) {}
  /// In the order of trial; one at least.
  explicit SpokenApi(std::vector<const ApiVersion*> candidates)
      : all_(candidates), candidates_(std::move(candidates)) {}

  /// It may be one whose drivers read claims themselves, whatever current() has
  /// to say of them.
  bool MayReadClaims() const;

  /// For the next call. Of two with the same methods it is the older one: its
  /// requests say all that those of the newer one do.
  const ApiVersion& current() const;

  /// The driver knows the method of `asked`. By which version the answer to it
  /// is to be read; `prepare` says that the answer may show this.
  const ApiVersion& OnAnswer(const ApiVersion& asked, bool prepare,
                             const std::string& answer);

  /// The driver does not know the method of `asked`. True when there is
  /// another one to try. If it knows none, the next call begins with the first
  /// again: a driver may serve its API later than it listens.
  bool OnUnimplemented(const ApiVersion& asked);

  /// Nothing was found out, or all of it is void.
  bool IsOpen() const { return candidates_ == all_; }

  /// `v1.DRAPlugin`, `v1alpha2`; `v1alpha4|v1alpha3` as long as it is not
  /// known.
  std::string Name() const;

 private:
  /// Where `version` stands in the order of trial.
  std::size_t Rank(const ApiVersion& version) const;

  std::vector<const ApiVersion*> all_;
  std::vector<const ApiVersion*> candidates_;  ///< Those that are left.
  bool answered_ = false;  ///< The driver knows the methods of current().
};

}  // namespace devmgr::dra
