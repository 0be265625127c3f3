// SPDX-License-Identifier: Apache-2.0
//
// client SOCKET MANIFEST CONTAINER wants a pod of devmgrd, shows what its container gets, and
// wants it no longer. All that it says to the daemon is generated: see build.rs.

pub mod devmgr {
    pub mod control {
        pub mod v1 {
            tonic::include_proto!("devmgr.control.v1");
        }
    }
    pub mod inspection {
        pub mod v1 {
            tonic::include_proto!("devmgr.inspection.v1");
        }
    }
}

use devmgr::control::v1::{controller_client::ControllerClient, *};
use devmgr::inspection::v1::PodState;
use hyper_util::rt::TokioIo;
use tonic::transport::{Endpoint, Uri};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let socket = arguments[1].clone();
    let channel = Endpoint::from_static("http://localhost")
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
        }))
        .await?;
    let mut daemon = ControllerClient::new(channel);
    let manifest = std::fs::read_to_string(&arguments[2])?;
    let uid = daemon.want_pod(WantPodRequest { manifest }).await?.into_inner().uid;
    let mut changes = daemon.watch_pods(WatchPodsRequest::default()).await?.into_inner();
    // A client that loses the connection goes on with the token of the last message.
    while let Some(change) = changes.message().await? {
        if change.pod.is_some_and(|pod| pod.uid == uid && pod.state() == PodState::Ready) {
            break;
        }
    }
    let container = arguments[3].clone();
    let of_container = ContainerDevicesRequest { uid: uid.clone(), container: container.clone() };
    let devices = daemon.container_devices(of_container).await?.into_inner();
    let start = BeforeContainerStartRequest { uid: uid.clone(), container };
    daemon.before_container_start(start).await?;
    for device in devices.cdi_devices {
        println!("{}", device.name);
    }
    daemon.unwant_pod(UnwantPodRequest { uid }).await?;
    Ok(())
}
