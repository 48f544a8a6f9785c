CREATE TABLE L (
  leftPk INT,
  leftA INT,
  PRIMARY KEY (leftPk) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'l',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE R (
  rightPk INT,
  rightA INT,
  PRIMARY KEY (rightPk) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = 'r',
  'properties.bootstrap.servers' = 'localhost:9092',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

SELECT leftPk, leftA, rightPk, rightA FROM L JOIN R ON leftA = rightA;
