//! One behavioural suite, run against every store through `Arc<dyn Store>`.

extern crate drawloom_store as store;

mod suite {
    pub mod adopting;
    pub mod both;
    pub mod drafts;
    pub mod forgetting;
    pub mod generations;
    pub mod home;
    pub mod names;
    pub mod principals;
    pub mod searching;
    pub mod twins;
    pub mod work;
    pub mod writing;
}
