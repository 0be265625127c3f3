// SPDX-License-Identifier: Apache-2.0
#include "dra/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/quote.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "dra/claim_c.h"
#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using state::PreparedDevice;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ClaimUid kD{"u-D"};
const std::vector<ClaimReference> kOne = {{kC, {"ns", "C"}}};
const std::vector<ClaimReference> kTwo = {{kC, {"ns", "C"}}, {kD, {"ns", "D"}}};

PreparedDevice Good() { return Prepared("dev-1", {"cdi.example.com/x=1"}); }

/// The word on claim C when the driver answers these devices for it.
absl::StatusOr<std::vector<PreparedDevice>> Check(
    const std::vector<PreparedDevice>& devices) {
  return CheckPrepareAnswer(kOne, RawAnswer{{"u-C", {devices, ""}}}).at(kC);
}

void ExpectRefused(const PreparedDevice& device, const std::string& why) {
  EXPECT_THAT(
      Check({Good(), device}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("NodePrepareResources returned an invalid "
                               "answer for ResourceClaim C: "),
                     HasSubstr(why))));
}

TEST(PrepareAnswerTest, DevicesComeOutAsTheyCame) {
  PreparedDevice shared = Prepared("dev-2", {}, {});
  shared.share_id = "s";
  const auto devices = Check({Good(), shared});
  ASSERT_THAT(devices, IsOk());
  EXPECT_THAT(*devices, ElementsAre(Good(), shared));
}

// DRA-058
TEST(PrepareAnswerTest, AnEmptyValueIsSuccessWithoutDevices) {
  const auto devices = Check({});
  ASSERT_THAT(devices, IsOk());
  EXPECT_THAT(*devices, IsEmpty());
}

// DRA-059
TEST(PrepareAnswerTest, AnEmptyAnswerSkipsTheClaim) {
  EXPECT_THAT(CheckPrepareAnswer(kOne, RawAnswer()).at(kC),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("NodePrepareResources skipped 1 "
                                       "ResourceClaims"),
                             HasSubstr("C"))));
}

// DRA-060
TEST(PrepareAnswerTest, AnErrorOfTheDriverIsItsClaimsError) {
  const auto answer = CheckPrepareAnswer(
      kTwo, RawAnswer{{"u-C", {{}, "boom"}}, {"u-D", {{Good()}, ""}}});
  EXPECT_THAT(answer.at(kC),
              StatusIs(absl::StatusCode::kUnavailable,
                       "NodePrepareResources failed for ResourceClaim C: "
                       "boom"));
  EXPECT_THAT(answer.at(kD), IsOk());
}

// DRA-061
TEST(PrepareAnswerTest, AnAnswerForAnUnknownClaimFailsAll) {
  const auto answer = CheckPrepareAnswer(
      kTwo, RawAnswer{{"u-C", {{Good()}, ""}}, {"u-X", {{Good()}, ""}}});
  ASSERT_EQ(answer.size(), 2u);
  for (const auto& [uid, devices] : answer) {
    EXPECT_THAT(devices,
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("NodePrepareResources returned result for "
                                   "unknown claim UID u-X")));
  }
}

// DRA-062
TEST(PrepareAnswerTest, AMissingClaimDoesNotHurtTheOther) {
  const auto answer =
      CheckPrepareAnswer(kTwo, RawAnswer{{"u-C", {{Good()}, ""}}});
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_THAT(answer.at(kC), IsOk());
  EXPECT_THAT(answer.at(kD),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("skipped 1")));
}

TEST(PrepareAnswerTest, AFailedCallIsEveryClaimsErrorWithItsCode) {
  const auto answer =
      CheckPrepareAnswer(kTwo, DeadlineExceededError("Deadline Exceeded"));
  ASSERT_EQ(answer.size(), 2u);
  for (const auto& [uid, devices] : answer) {
    EXPECT_THAT(devices, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                  "NodePrepareResources: Deadline Exceeded"));
  }
}

TEST(PrepareAnswerTest, AFailedCallOfTheDriversOwnStaysItsWord) {
  for (const auto code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kDeadlineExceeded}) {
    const absl::Status status =
        CheckPrepareAnswer(kOne, FromPeer(MakeStatus(code, "busy")))
            .at(kC)
            .status();
    EXPECT_TRUE(IsFromPeer(status)) << status;
    EXPECT_THAT(status,
                StatusIs(code, fmt::format("NodePrepareResources: the driver "
                                           "answered with {}: busy",
                                           absl::StatusCodeToString(code))));
  }
  // No other code could be ours.
  EXPECT_THAT(
      CheckUnprepareAnswer(kOne, FromPeer(NotFoundError("gone"))).at(kC),
      StatusIs(absl::StatusCode::kNotFound, "NodeUnprepareResources: gone"));
  EXPECT_FALSE(
      IsFromPeer(CheckPrepareAnswer(kOne, UnavailableError("the peer hung up"))
                     .at(kC)
                     .status()));
}

TEST(PrepareAnswerTest, ABadDeviceFailsOnlyItsClaim) {
  PreparedDevice bad = Good();
  bad.pool = "";
  const auto answer = CheckPrepareAnswer(
      kTwo, RawAnswer{{"u-C", {{bad}, ""}}, {"u-D", {{Good()}, ""}}});
  EXPECT_THAT(answer.at(kC), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(answer.at(kD), IsOk());
}

TEST(PrepareAnswerTest, RefusesGarbageForPoolNames) {
  PreparedDevice device = Good();
  for (const std::string& pool :
       {std::string("Pool"), std::string("a//b"), std::string("a b"),
        std::string("a\0b", 3), std::string("../x"), std::string(254, 'a')}) {
    device.pool = pool;
    ExpectRefused(device, "pool name");
  }
  device.pool = "";
  ExpectRefused(device, "empty pool name");
  device.pool = std::string(2'000, 'a');
  ExpectRefused(device, "pool name of 2000 bytes, at most 1024 are allowed");
}

TEST(PrepareAnswerTest, TakesPoolNamesOfSeveralParts) {
  PreparedDevice device = Good();
  device.pool = "rack-1.example.com/node-7";
  EXPECT_THAT(Check({device}), IsOk());
}

TEST(PrepareAnswerTest, RefusesGarbageForDeviceNames) {
  PreparedDevice device = Good();
  for (const std::string& name :
       {std::string("Dev"), std::string("a/b"), std::string("-a"),
        std::string("a\n"), std::string("\xff\xfe"), std::string(64, 'a')}) {
    device.device = name;
    ExpectRefused(device, "device name");
  }
  device.device = "";
  ExpectRefused(device, "empty device name");
}

TEST(PrepareAnswerTest, RefusesCdiNamesThatAreNotQualified) {
  for (const std::string& id :
       {std::string("1"), std::string("vendor=1"), std::string("/x=1"),
        std::string("cdi.example.com/x="), std::string("cdi.example.com/=1"),
        std::string("cdi.example.com/x=a b"),
        std::string("cdi.example.com/x=\0", 19)}) {
    ExpectRefused(Prepared("dev-2", {"cdi.example.com/x=1", id}),
                  "device 'dev-2': ");
  }
  ExpectRefused(Prepared("dev-2", {""}), "empty CDI device ID");
  ExpectRefused(Prepared("dev-2", {"a.b/c=" + std::string(2'000, 'x')}),
                "CDI device ID of 2006 bytes");
}

TEST(PrepareAnswerTest, RefusesOversizedAnswers) {
  EXPECT_THAT(Check(std::vector<PreparedDevice>(kMaxDevicesPerClaim, Good())),
              IsOk());
  EXPECT_THAT(
      Check(std::vector<PreparedDevice>(kMaxDevicesPerClaim + 1, Good())),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("257 devices, at most 256 are allowed")));

  PreparedDevice device = Good();
  device.cdi_device_ids.assign(kMaxCdiDevicesPerDevice, "a.b/c=d");
  EXPECT_THAT(Check({device}), IsOk());
  device.cdi_device_ids.push_back("a.b/c=d");
  ExpectRefused(device, "257 CDI device IDs, at most 256 are allowed");

  device = Good();
  device.request_names.assign(kMaxRequestsPerDevice, "r");
  EXPECT_THAT(Check({device}), IsOk());
  device.request_names.push_back("r");
  ExpectRefused(device, "257 request names, at most 256 are allowed");

  device = Good();
  device.share_id = std::string(2'000, 's');
  ExpectRefused(device, "share ID of 2000 bytes");
  device = Good();
  device.request_names = {std::string(2'000, 'r')};
  ExpectRefused(device, "request name of 2000 bytes");
  device.request_names = {""};
  ExpectRefused(device, "empty request name");
}

// Errors end in logs, events and JSON: bounded, and never half a character.
TEST(PrepareAnswerTest, LongTextsOfTheDriverAreCutBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 10'000; ++i) euros += "\xe2\x82\xac";
  for (const std::string& text : {euros, "x" + euros, "xx" + euros}) {
    const auto failed =
        CheckPrepareAnswer(kOne, RawAnswer{{"u-C", {{}, text}}}).at(kC);
    EXPECT_LT(MessageOf(failed.status()).size(), 4'500u);
    EXPECT_GT(MessageOf(failed.status()).size(), 4'000u);
    EXPECT_EQ(api::FindInvalidUtf8(MessageOf(failed.status())),
              std::string::npos);
    const auto unknown =
        CheckPrepareAnswer(kOne, RawAnswer{{text, {{}, ""}}}).at(kC);
    EXPECT_LT(MessageOf(unknown.status()).size(), 1'500u);
    EXPECT_EQ(api::FindInvalidUtf8(MessageOf(unknown.status())),
              std::string::npos);
    const auto call = CheckPrepareAnswer(kOne, UnavailableError("{}", text));
    EXPECT_LT(MessageOf(call.at(kC).status()).size(), 4'500u);
  }
}

TEST(UnprepareAnswerTest, AnEmptyValueIsSuccess) {
  EXPECT_THAT(CheckUnprepareAnswer(kOne, RawAnswer{{"u-C", {}}}).at(kC),
              IsOk());
}

// DRA-087 to DRA-089
TEST(UnprepareAnswerTest, ErrorsAreToldPerClaim) {
  EXPECT_THAT(CheckUnprepareAnswer(kOne, RawAnswer()).at(kC),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("NodeUnprepareResources skipped 1 "
                                 "ResourceClaims")));
  const auto answer =
      CheckUnprepareAnswer(kTwo, RawAnswer{{"u-C", {{}, "busy"}}, {"u-D", {}}});
  EXPECT_THAT(answer.at(kC),
              StatusIs(absl::StatusCode::kUnavailable,
                       "NodeUnprepareResources failed for ResourceClaim C: "
                       "busy"));
  EXPECT_THAT(answer.at(kD), IsOk());
  EXPECT_THAT(CheckUnprepareAnswer(kOne, DeadlineExceededError("late")).at(kC),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "NodeUnprepareResources: late"));
  EXPECT_THAT(
      CheckUnprepareAnswer(kOne, RawAnswer{{"u-C", {}}, {"u-X", {}}}).at(kC),
      StatusIs(absl::StatusCode::kInternal,
               HasSubstr("NodeUnprepareResources returned result for unknown "
                         "claim UID u-X")));
}

}  // namespace
}  // namespace devmgr::dra
