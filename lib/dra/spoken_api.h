// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dra/api_version.h"

namespace devmgr::dra {

/// What is known of the API that a driver's endpoint speaks. Old drivers do not
/// say it; it shows in what they answer, and is remembered.
class SpokenApi {
 public:
  SpokenApi(const ApiVersion& version) : candidates_{&version} {}
  /// In the order of trial; one at least.
  explicit SpokenApi(std::vector<const ApiVersion*> candidates)
      : candidates_(std::move(candidates)) {}

  /// It may be one whose drivers read claims themselves, whatever current() has
  /// to say of them.
  bool MayReadClaims() const;

  /// For the next call. Of two with the same methods it is the older one: its
  /// requests say all that those of the newer one do.
  const ApiVersion& current() const;

  /// The driver knows the method of `asked`. By which version the answer to it
  /// is to be read; `prepare` says that this may be told by the answer.
  const ApiVersion& OnAnswer(const ApiVersion& asked, bool prepare,
                             const std::string& answer);

  /// The driver does not know the method of `asked`. True when there is
  /// another one to try.
  bool OnUnimplemented(const ApiVersion& asked);

  /// `v1.DRAPlugin`, `v1alpha2`; `v1alpha4|v1alpha3` as long as it is not
  /// known.
  std::string Name() const;

 private:
  std::vector<const ApiVersion*> candidates_;
};

}  // namespace devmgr::dra
