// SPDX-License-Identifier: Apache-2.0
//
// Endpoints with real links; who listens there is in the hands of the test.
#include "dra/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::dra {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class EndpointTest : public testing::Test {
 protected:
  EndpointTest() {
    fs::create_directories(plugins_ / "d");
    fs::create_directories(outside_);
  }

  absl::Status Check(const fs::path& endpoint) const {
    return CheckEndpoint(endpoint.string(), {plugins_});
  }
  auto Refused(const fs::path& endpoint, const fs::path& target) const {
    return StatusIs(
        absl::StatusCode::kInvalidArgument,
        AllOf(HasSubstr("endpoint '" + endpoint.string() + "'"),
              HasSubstr("is a symbolic link to '" + target.string() + "'"),
              HasSubstr("is not inside " + plugins_.string())));
  }

  absl::Status Dial(const fs::path& endpoint,
                    std::optional<uid_t> owner = std::nullopt) {
    const Dialer dialer = GuardedDialer(
        [this](const fs::path& socket, auto on_hang_up) {
          return peer_.Dial(socket, std::move(on_hang_up));
        },
        {plugins_}, owner);
    return dialer(endpoint, [] {}).status();
  }

  const TempFolder folder_;
  const fs::path plugins_ = folder_.path() / "plugins";
  const fs::path outside_ = folder_.path() / "run";
  FakePeer peer_;  ///< Root listens.
};

// DW-32: the check of the name alone was led around by a link.
TEST_F(EndpointTest, ALinkThatLeadsOutsideIsRefused) {
  std::ofstream(outside_ / "runtime.sock") << "";
  const fs::path link = plugins_ / "d/dra.sock";
  fs::create_symlink(outside_ / "runtime.sock", link);
  EXPECT_THAT(Check(link), Refused(link, outside_ / "runtime.sock"));
  EXPECT_THAT(Dial(link), Refused(link, outside_ / "runtime.sock"));
  EXPECT_THAT(peer_.dialed(), IsEmpty());
}

TEST_F(EndpointTest, AFolderThatLeadsOutsideIsRefused) {
  fs::create_directory_symlink("../run", plugins_ / "e");
  const fs::path endpoint = plugins_ / "e/dra.sock";
  EXPECT_THAT(Check(endpoint), Refused(endpoint, outside_ / "dra.sock"));
  EXPECT_THAT(Check(plugins_ / "d/../e/dra.sock"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(EndpointTest, LinksWithinTheDirectoryAreFine) {
  std::ofstream(plugins_ / "d/real.sock") << "";
  fs::create_symlink("real.sock", plugins_ / "d/dra.sock");
  fs::create_directory_symlink(plugins_ / "d", plugins_ / "e");
  EXPECT_THAT(Check(plugins_ / "d/dra.sock"), IsOk());
  EXPECT_THAT(Check(plugins_ / "e/dra.sock"), IsOk());
  EXPECT_THAT(Dial(plugins_ / "e/dra.sock"), IsOk());
}

// As /var/lib/kubelet is on some machines.
TEST_F(EndpointTest, TheDirectoryMayBeALinkItself) {
  const fs::path other = folder_.path() / "elsewhere";
  fs::create_directory_symlink(plugins_, other);
  EXPECT_THAT(CheckEndpoint(other / "d/dra.sock", {other}), IsOk());
  EXPECT_THAT(CheckEndpoint(other / "d/../../run/x.sock", {other}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A driver may register before its service listens (DRA-025).
TEST_F(EndpointTest, WhatIsNotThereYetIsFine) {
  EXPECT_THAT(Check(plugins_ / "d/dra.sock"), IsOk());
  EXPECT_THAT(Check(plugins_ / "later/dra.sock"), IsOk());
}

TEST_F(EndpointTest, ALinkThatComesLaterIsRefusedThen) {
  const fs::path link = plugins_ / "d/dra.sock";
  fs::create_symlink(outside_ / "later.sock", link);
  EXPECT_THAT(Check(link), IsOk());  // It leads nowhere.
  std::ofstream(outside_ / "later.sock") << "";
  EXPECT_THAT(Dial(link), Refused(link, outside_ / "later.sock"));
  EXPECT_THAT(peer_.dialed(), IsEmpty());
}

TEST_F(EndpointTest, LinksInACircleLeadNowhere) {
  fs::create_symlink("b.sock", plugins_ / "a.sock");
  fs::create_symlink("a.sock", plugins_ / "b.sock");
  EXPECT_THAT(Check(plugins_ / "a.sock"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not exist: ")));
}

TEST_F(EndpointTest, WithoutDirectoriesLinksMayLeadAnywhere) {
  fs::create_directory_symlink(outside_, plugins_ / "e");
  EXPECT_THAT(CheckEndpoint(plugins_ / "e/dra.sock", {}), IsOk());
}

// DW-32
TEST_F(EndpointTest, AUserOffersSocketsOfItsOwn) {
  const fs::path endpoint = plugins_ / "d/dra.sock";
  EXPECT_THAT(Dial(endpoint, 1000),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       "user 0 listens at '" + endpoint.string() +
                           "', but user 1000 on the registration socket"));
  EXPECT_EQ(peer_.open(), 0);
  EXPECT_THAT(Dial(endpoint, 0), IsOk());
  EXPECT_THAT(Dial(endpoint, std::nullopt), IsOk());
}

TEST_F(EndpointTest, ADialThatFailsSaysWhy) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  EXPECT_THAT(Dial(plugins_ / "d/dra.sock", 1000),
              StatusIs(absl::StatusCode::kUnavailable, "nobody listens"));
}

}  // namespace
}  // namespace devmgr::dra
