//! What the fuzz targets of `mirror/agent/fuzz` drive: what the controller answers an agent, and what a bridge's agent
//! hears at its ports.

use crate::wire::Answer;

pub use crate::switch::fuzzing::{frame, switch_answer};

/// What the controller wants of a DataNode's agent.
pub fn agent_answer(bytes: &[u8]) {
    let Ok(answer) = serde_json::from_slice::<Answer>(bytes) else {
        return;
    };
    for flow in &answer.flows {
        let key = flow.receive.key();
        if flow.receive.is_sound() {
            assert!(key.source_port != [0; 2] && key.target_port != [0; 2]);
        }
        assert_eq!(flow.part().receive, flow.receive);
    }
}
