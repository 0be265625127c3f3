// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl import kubelet, export kubelet.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::HasSubstr;

class KubeletTest : public CommandLineTest {
 protected:
  KubeletTest() {
    import_kubelet_ = [this](const KubeletImportOptions& options)
        -> absl::StatusOr<KubeletImport> {
      imported_ = options;
      KubeletImport result;
      result.pods = 2;
      result.devices = 1;
      result.claims = 3;
      result.adopted = 2;
      result.losses = losses_;
      result.notes = {"a note"};
      result.written =
          !options.dry_run && (losses_.empty() || options.accept_losses);
      return result;
    };
    export_kubelet_ = [this](const KubeletExportOptions& options)
        -> absl::StatusOr<KubeletExport> {
      exported_ = options;
      KubeletExport result;
      result.pods = 1;
      result.losses = losses_;
      result.written =
          !options.dry_run && (losses_.empty() || options.accept_losses);
      return result;
    };
  }

  KubeletImportOptions imported_;
  KubeletExportOptions exported_;
  std::vector<std::string> losses_;
};

TEST_F(KubeletTest, ImportSaysWhatWasTakenOver) {
  const Result result =
      Run({"--state-dir", "/s", "import", "kubelet", "/var/lib/kubelet"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "imported 2 pods with 1 device and 3 claims (2 as prepared) into "
            "the ledger in '/s'\n");
  EXPECT_THAT(result.err, HasSubstr("a note"));
  EXPECT_EQ(imported_.state_dir, "/s");
  EXPECT_EQ(imported_.kubelet_dir, "/var/lib/kubelet");
  EXPECT_FALSE(imported_.dry_run);
  EXPECT_FALSE(imported_.accept_losses);
}

TEST_F(KubeletTest, ADryRunIsSaidToBeOne) {
  losses_ = {"entry 3: it has no devices"};
  const Result result =
      Run({"--state-dir", "/s", "import", "kubelet", "/k", "--dry-run"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("would import 2 pods"));
  EXPECT_THAT(result.err, HasSubstr("left out: entry 3"));
}

TEST_F(KubeletTest, LossesAreAcceptedOrNothingIsWritten) {
  losses_ = {"one", "two"};
  for (const char* verb : {"import", "export"}) {
    Result result = Run({"--state-dir", "/s", verb, "kubelet", "/k"});
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("left out: two"));
    EXPECT_THAT(result.err, HasSubstr("--accept-losses"));
    result =
        Run({"--state-dir", "/s", verb, "kubelet", "/k", "--accept-losses"});
    EXPECT_EQ(result.code, 0) << result.err;
  }
}

TEST_F(KubeletTest, ExportIsADocumentForPrograms) {
  const auto document =
      RunJson({"--state-dir", "/s", "export", "kubelet", "/out"});
  EXPECT_EQ(document["kind"], "KubeletExport");
  EXPECT_EQ(document["written"], true);
  EXPECT_EQ(document["pods"], 1);
  EXPECT_EQ(exported_.out_dir, "/out");
  EXPECT_EQ(exported_.state_dir, "/s");
}

TEST_F(KubeletTest, AStateDirectoryAndADirectoryAreNeeded) {
  EXPECT_THAT(Run({"import", "kubelet", "/k"}).err,
              HasSubstr("--state-dir DIR import kubelet"));
  EXPECT_THAT(Run({"export", "kubelet", "/k"}).err,
              HasSubstr("--state-dir DIR export kubelet"));
  EXPECT_EQ(Run({"--state-dir", "/s", "import", "kubelet"}).code, kExitUsage);
  EXPECT_EQ(Run({"--state-dir", "/s", "import"}).code, kExitUsage);
  EXPECT_EQ(Run({"--state-dir", "/s", "export", "kubelet", ""}).code,
            kExitUsage);
}

TEST_F(KubeletTest, ErrorsAreShown) {
  import_kubelet_ = [](const KubeletImportOptions&) {
    return absl::AlreadyExistsError("it was done");
  };
  const Result result = Run({"--state-dir", "/s", "import", "kubelet", "/k"});
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("it was done"));
}

}  // namespace
}  // namespace devmgr::ctl
