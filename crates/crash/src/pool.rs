use crate::scenario::Scenario;
pub(crate) fn scenarios() -> Vec<Box<dyn Scenario>> {
    Vec::new()
}
