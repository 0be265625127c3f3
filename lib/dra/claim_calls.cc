// SPDX-License-Identifier: Apache-2.0
#include "dra/claim_calls.h"

#include <algorithm>
#include <utility>

#include "common/peer_status.h"
#include "common/status.h"
#include "dra/answer.h"
#include "dra/compat/handles.h"

namespace devmgr::dra {
namespace {

/// Of one batch, where each claim has a call of its own.
constexpr std::size_t kCallsAtOnce = 16;
/// So many batches fit side by side into what an instance may have under way.
constexpr std::size_t kBatches = 4;

const absl::Status& StatusOf(const absl::Status& word) { return word; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& word) {
  return word.status();
}

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

/// Those of `claims` that are asked about; the others have their answer.
template <typename Answer>
std::vector<ClaimReference> TakeSayable(
    const Question<Answer>& question, const SpokenApi& api,
    const std::vector<ClaimReference>& claims, Answer* refused) {
  // What was prepared by another instance can be taken back.
  if (!question.prepare || api.MayReadClaims()) return claims;
  std::vector<ClaimReference> sayable;
  for (const ClaimReference& claim : claims) {
    const absl::Status status = CheckSayable(api.current(), claim);
    if (status.ok()) {
      sayable.push_back(claim);
    } else {
      refused->emplace(claim.uid, status);
    }
  }
  return sayable;
}

template <typename Answer>
void AddHint(const ApiVersion& version,
             const std::vector<ClaimReference>& claims, Answer* answer) {
  for (const ClaimReference& claim : claims) {
    const auto word = answer->find(claim.uid);
    if (word == answer->end() || StatusOf(word->second).ok()) continue;
    word->second = WithHint(version, claim, StatusOf(word->second));
  }
}

/// What the driver has to say of `asked`.
template <typename Answer>
Answer Read(const Question<Answer>& question, const ApiVersion& spoken,
            bool may_read_claims, const std::vector<ClaimReference>& asked,
            const std::string& bytes) {
  Answer answer =
      question.check(asked, (spoken.*question.decode)(bytes, asked));
  if (!question.prepare || may_read_claims) return answer;
  // It shows only now which API this is: the driver prepared what it was not
  // told in full.
  for (const ClaimReference& claim : asked) {
    const absl::Status status = CheckSayable(spoken, claim);
    if (!status.ok()) answer.insert_or_assign(claim.uid, status);
  }
  AddHint(spoken, asked, &answer);
  return answer;
}

/// After a search that ended without a method that the driver knows.
absl::Status Explain(const absl::Status& status, const SpokenApi& api) {
  const std::string names = api.Name();
  if (!absl::IsUnimplemented(status) || !api.IsOpen()) return status;
  return WithContext(status, "the driver serves no API of {}", names);
}

template <typename Answer>
void AskOnce(const Question<Answer>& question,
             const std::shared_ptr<DriverInstance>& instance,
             std::vector<ClaimReference> claims,
             std::function<void(Answer)> done) {
  const ApiVersion& version = instance->api().current();
  Answer refused;
  std::vector<ClaimReference> asked =
      TakeSayable(question, instance->api(), claims, &refused);
  absl::StatusOr<std::string> request = (version.*question.encode)(asked);
  if (asked.empty()) request = absl::CancelledError("nothing to ask");
  instance->Call(
      (version.*question.method)(), std::move(request),
      [question, &version, weak = std::weak_ptr(instance),
       claims = std::move(claims), asked = std::move(asked),
       refused = std::move(refused),
       done = std::move(done)](const absl::StatusOr<std::string>& bytes) {
        const auto self = weak.lock();
        Answer answer = refused;
        if (!bytes.ok()) {
          if (self != nullptr && absl::IsUnimplemented(bytes.status()) &&
              self->api().OnUnimplemented(version)) {
            return Ask(question, self, claims, done);
          }
          Answer failed = question.check(
              asked, self == nullptr ? bytes.status()
                                     : Explain(bytes.status(), self->api()));
          const bool not_sent = absl::IsUnavailable(bytes.status()) &&
                                !IsFromPeer(bytes.status());
          if (question.prepare && !not_sent) {
            AddHint(version, asked, &failed);
          }
          answer.merge(failed);
          return done(std::move(answer));
        }
        const ApiVersion& spoken =
            self == nullptr
                ? version
                : self->api().OnAnswer(version, question.prepare, *bytes);
        const bool may_read_claims =
            self != nullptr && self->api().MayReadClaims();
        Answer read = Read(question, spoken, may_read_claims, asked, *bytes);
        answer.merge(read);
        done(std::move(answer));
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
