// SPDX-License-Identifier: Apache-2.0
#include "dra/claim_calls.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "dra/answer.h"

namespace devmgr::dra {
namespace {

/// Of one batch, where each claim has a call of its own.
constexpr std::size_t kCallsAtOnce = 16;
/// So many batches fit side by side into what an instance may have under way.
constexpr std::size_t kBatches = 4;

/// One of the protocol's calls, and how its answer is read.
template <typename Answer>
struct Question {
  bool prepare;
  std::string (ApiVersion::*method)() const;
  decltype(&ApiVersion::encode_prepare) encode;
  decltype(&ApiVersion::decode_prepare) decode;
  Answer (*check)(const std::vector<ClaimReference>& asked,
                  const absl::StatusOr<RawAnswer>& raw);
};

template <typename Answer>
void Ask(const Question<Answer>& question,
         const std::shared_ptr<DriverInstance>& instance,
         std::vector<ClaimReference> claims, std::function<void(Answer)> done);

/// The request's bytes.
///   FailedPrecondition  a claim cannot be said in this version
template <typename Answer>
absl::StatusOr<std::string> Encode(const Question<Answer>& question,
                                   const ApiVersion& version,
                                   const std::vector<ClaimReference>& claims) {
  for (const ClaimReference& claim : claims) {
    if (question.prepare && version.only_text_handles &&
        claim.handle.structured.has_value()) {
      return FailedPreconditionError(
          "claim '{}' was allocated by structured parameters, which API {} "
          "cannot express",
          claim.name.ToString(), version.name);
    }
  }
  return (version.*question.encode)(claims);
}

template <typename Answer>
void AskOnce(const Question<Answer>& question,
             const std::shared_ptr<DriverInstance>& instance,
             std::vector<ClaimReference> claims,
             std::function<void(Answer)> done) {
  const ApiVersion& version = instance->api().current();
  absl::StatusOr<std::string> request = Encode(question, version, claims);
  instance->Call(
      (version.*question.method)(), std::move(request),
      [question, &version, weak = std::weak_ptr(instance),
       claims = std::move(claims),
       done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
        const auto self = weak.lock();
        if (!bytes.ok()) {
          if (self != nullptr && absl::IsUnimplemented(bytes.status()) &&
              self->api().OnUnimplemented(version)) {
            return Ask(question, self, claims, done);
          }
          return done(question.check(claims, bytes.status()));
        }
        const ApiVersion& spoken =
            self == nullptr
                ? version
                : self->api().OnAnswer(version, question.prepare, *bytes);
        done(question.check(claims, (spoken.*question.decode)(*bytes, claims)));
      });
}

/// Claims of one batch with a call each.
template <typename Answer>
struct Series {
  Question<Answer> question;
  std::shared_ptr<DriverInstance> instance;
  std::vector<ClaimReference> claims;
  std::function<void(Answer)> done;
  std::size_t next = 0;
};

template <typename Answer>
void AskNext(const std::shared_ptr<Series<Answer>>& series) {
  if (series->next == series->claims.size()) return;
  Ask<Answer>(series->question, series->instance,
              {series->claims[series->next++]}, [series](Answer answer) {
                series->done(std::move(answer));
                AskNext(series);
              });
}

template <typename Answer>
void Ask(const Question<Answer>& question,
         const std::shared_ptr<DriverInstance>& instance,
         std::vector<ClaimReference> claims, std::function<void(Answer)> done) {
  if (instance->api().current().batched || claims.size() <= 1) {
    return AskOnce(question, instance, std::move(claims), std::move(done));
  }
  const std::size_t at_once =
      std::min({claims.size(), kCallsAtOnce,
                std::max<std::size_t>(instance->max_calls() / kBatches, 1)});
  auto series = std::make_shared<Series<Answer>>(
      Series<Answer>{question, instance, std::move(claims), std::move(done)});
  for (std::size_t i = 0; i < at_once; ++i) AskNext(series);
}

}  // namespace

void PrepareClaims(const std::shared_ptr<DriverInstance>& instance,
                   std::vector<ClaimReference> claims,
                   std::function<void(PrepareAnswer)> done) {
  Ask<PrepareAnswer>(
      {true, &ApiVersion::PrepareMethod, &ApiVersion::encode_prepare,
       &ApiVersion::decode_prepare, &CheckPrepareAnswer},
      instance, std::move(claims), std::move(done));
}

void UnprepareClaims(const std::shared_ptr<DriverInstance>& instance,
                     std::vector<ClaimReference> claims,
                     std::function<void(UnprepareAnswer)> done) {
  Ask<UnprepareAnswer>(
      {false, &ApiVersion::UnprepareMethod, &ApiVersion::encode_unprepare,
       &ApiVersion::decode_unprepare, &CheckUnprepareAnswer},
      instance, std::move(claims), std::move(done));
}

}  // namespace devmgr::dra
