use content::{Config, Tree};

use crate::vectors;

#[tokio::test]
async fn the_sample_site_answers_every_vector() {
    let provider = content::open(&Config::sample()).await.unwrap();
    vectors::run(&*provider, "sqlite").await;
}

#[tokio::test]
async fn walking_by_parents_gives_the_same_answers() {
    let config = Config { tree: Tree::Walk, ..Config::sample() };
    vectors::run(&*content::open(&config).await.unwrap(), "sqlite").await;
}
